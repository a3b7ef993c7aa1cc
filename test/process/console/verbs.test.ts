import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { AgentdProcess } from '../../../scripts/fleet/agentd-process.ts';
import { eventually } from '../../helpers/eventually.ts';
import { runVerb } from '../../helpers/run-verb.ts';

/** A real supervisor behind a bearer token, operated by the verbs. */
let folder = '';
let supervisor: AgentdProcess;
let url = '';
let access: string[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'agentd-console-'));
  await writeFile(
    join(folder, 'slow.yaml'),
    'turns: [ { text: "thinking" }, { sleep: 120000 }, { final: done } ]\n',
  );
  await writeFile(join(folder, 'token'), 'open sesame\n');
  await writeFile(join(folder, 'other'), 'something else\n');
  supervisor = new AgentdProcess('supervisor', [
    'run',
    'think for a while',
    ...['--intelligence', `script:${join(folder, 'slow.yaml')}`],
    ...['--serve-mcp', 'http://127.0.0.1:0'],
    ...['--serve-bearer', `{{secret-file:${join(folder, 'token')}}}`],
    ...['--log-format', 'json'],
  ]);
  const ready = await supervisor.line('proc.ready', ({ event }) => event === 'proc.ready');
  url = String(ready.management_url);
  access = ['--url', url, '--bearer-file', join(folder, 'token')];
});

afterEach(async () => {
  supervisor.kill('SIGKILL');
  await supervisor.exited;
  await rm(folder, { recursive: true, force: true });
});

const running = () =>
  eventually('the agent to run', async () => {
    const { stdout } = await runVerb(['ps', ...access, '--json']);
    const agent = stdout === '' ? null : (JSON.parse(stdout) as Record<string, unknown>);
    return agent?.state === 'running' && agent;
  });

describe('the verbs that show and operate a running supervisor', () => {
  it('list, draw and describe the agent that runs', async () => {
    expect(await running()).toMatchObject({ handle: '0', status: 'running', health: 'healthy' });
    const ps = await runVerb(['ps', ...access]);
    expect(ps.code).toBe(0);
    expect(ps.stdout).toMatch(/^HANDLE +PID +STATE/);
    expect(ps.stdout).toMatch(/\n0 +\d+ +running/);
    const tree = await runVerb(['tree', ...access]);
    expect(tree.stdout).toMatch(/running, ready/);
    expect(tree.stdout).toMatch(/└─ 0 {2}running/);
    const twice = await runVerb(['tree', ...access, '--url', url, '--json']);
    expect(twice.stdout.trim().split('\n')).toHaveLength(2);
    const inspected = await runVerb(['inspect', '0', ...access]);
    expect(inspected.stdout).toMatch(/status +running/);
    expect(inspected.stdout).toMatch(/subagent\.spawn/);
    const top = await runVerb(['top', ...access]);
    expect(top.code).toBe(0);
    expect(top.stdout).toMatch(/gates +reactions 0 ·/);
    expect(top.stdout).toMatch(/└─ 0 {2}running/);
    expect(top.stdout).toMatch(/itself +CPU [\d.]+% · RSS [\d.]+ MiB · pid \d+/);
    expect(await runVerb(['top', '--once', ...access, '--url', 'http://127.0.0.1:1'])).toMatchObject({
      code: 1,
    });
    expect(await runVerb(['top', '--interval', '1ms', ...access])).toMatchObject({ code: 2 });
    const unknown = await runVerb(['inspect', '0.77', ...access]);
    expect(unknown).toMatchObject({ code: 1, stdout: '' });
    expect(unknown.stderr).toContain('knows no agent 0.77');
  });

  it('pause, resume, cancel and drain it', async () => {
    await running();
    const status = async (): Promise<Record<string, unknown>> =>
      (
        JSON.parse((await runVerb(['tree', ...access, '--json'])).stdout) as {
          status: Record<string, unknown>;
        }
      ).status;
    expect(await runVerb(['pause', ...access])).toMatchObject({ code: 0, stderr: '' });
    expect(await status()).toMatchObject({ paused: true });
    expect((await runVerb(['resume', ...access, '--json'])).stdout).toContain('"paused":false');
    expect((await runVerb(['lame-duck', ...access])).stdout).toContain('lame duck');
    expect(await status()).toMatchObject({ lame_duck: true, ready: false });
    expect((await runVerb(['lame-duck', '--off', ...access])).stdout).toContain('takes new work again');
    expect(await status()).toMatchObject({ lame_duck: false });
    const missing = await runVerb(['cancel', '0.9', ...access]);
    expect(missing.code).toBe(1);
    expect(missing.stderr).toContain('no running subagent 0.9');
    expect(missing.stderr).toContain('`agentd ps`');
    expect((await runVerb(['drain', '--deadline', '5s', ...access])).code).toBe(0);
    expect(await supervisor.exited).toEqual({ code: 0, signal: null });
  });

  it('stop one agent by its handle', async () => {
    await running();
    const cancelled = await runVerb(['cancel', '0', '--reason', 'enough', ...access]);
    expect(cancelled).toMatchObject({ code: 0, stderr: '' });
    expect(cancelled.stdout).toContain('is stopping agent 0');
    expect((await supervisor.exited).code).toBe(0);
  });

  it('say what to do when they are not let in, when nobody is there and when misused', async () => {
    const refused = await runVerb(['ps', '--url', url, '--bearer-file', join(folder, 'other')]);
    expect(refused).toMatchObject({ code: 1, stdout: '' });
    expect(refused.stderr).toContain('does not let us in (HTTP 401)');
    expect(refused.stderr).toContain('--bearer-file');
    const nameless = await runVerb(['pause', '--url', url]);
    expect(nameless.stderr).toContain('Present the token of --serve-bearer');
    const partly = await runVerb(['ps', ...access, '--url', 'http://127.0.0.1:1']);
    expect(partly.code).toBe(1);
    expect(partly.stdout).toContain('HANDLE');
    for (const args of [
      ['ps'],
      ['ps', '--url', 'ftp://x'],
      ['inspect', 'nonsense', ...access],
      ['inspect', ...access],
      ['cancel', '0', ...access, '--url', url],
      ['drain', '--deadline', 'soon', ...access],
      ['inspect', '0', '--events', 'many', ...access],
    ]) {
      expect(await runVerb(args), args.join(' ')).toMatchObject({ code: 2, stdout: '' });
    }
    supervisor.kill('SIGKILL');
    await supervisor.exited;
    const gone = await runVerb(['tree', ...access]);
    expect(gone).toMatchObject({ code: 1, stdout: '' });
    expect(gone.stderr).toContain(`cannot reach ${url}: connect ECONNREFUSED`);
    expect(gone.stderr).toContain('--serve-mcp');
  });

  it('take the URL from the environment', async () => {
    const env = { AGENT_MANAGEMENT_URL: url };
    const { code } = await runVerb(['tree', '--bearer-file', join(folder, 'token')], { env });
    expect(code).toBe(0);
  });
});
