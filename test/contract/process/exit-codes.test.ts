import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { execa } from 'execa';
import { afterAll, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { EXIT } from '../../../protocol/exit-codes.ts';
import { AGENTD } from '../../../scripts/fleet/agentd-process.ts';
import { startModelServer } from '../../fixtures/model-server.ts';
import { Binary, runBinary } from '../support/binary.ts';
import { expectContractLines } from '../support/lines.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** The rows of the exit-code table that are not decided by a terminal status alone. */
const folder = temporaryFolder();
const closing: (() => Promise<unknown>)[] = [];
afterAll(() => Promise.all(closing.map((close) => close())));

function script(name: string, turns: readonly Record<string, unknown>[]): string {
  return `script:${folder.file(`${name}.yaml`, stringify({ turns }))}`;
}
const TOKENS = { in: 30, out: 10 };
const FINAL = script('final', [{ final: 'done', tokens: TOKENS }]);
const report = (path: string): unknown => JSON.parse(readFileSync(path, 'utf8'));

/** A port nobody listens on. */
async function deadEndpoint(): Promise<string> {
  const server = await startModelServer([{ kind: 'hang' }]);
  await server.close();
  return server.origin;
}

describe('exit 2 comes before any side effect', () => {
  it.each([
    ['a bad value', ['--max-steps', 'zero']],
    ['an unknown flag', ['--no-such-flag']],
    ['wiring that cannot be', ['--route', 'a:///**=>claim:nobody', '--mode', 'reactive']],
  ])('for %s: one config.invalid line and nothing else', async (what, flags) => {
    const files = [folder.path(`${what}.report`), folder.path(`${what}.health`)];
    const [reportFile = '', healthFile = ''] = files;
    const run = await runBinary([
      'run',
      'x',
      '--intelligence',
      FINAL,
      '--report-file',
      reportFile,
      '--health-file',
      healthFile,
      ...flags,
    ]);
    expect(run.exit).toEqual({ code: EXIT.USAGE, signal: null });
    expect(run.lines).toMatchObject([{ event: 'config.invalid', level: 'error' }]);
    expectContractLines(run);
    expect(run.words).toEqual([]);
    expect(run.stdout).toBe('');
    expect(files.filter((path) => existsSync(path))).toEqual([]);
  });
});

describe('exit 4 and 6 say which peer was missing', () => {
  it('4 when no model endpoint answers', async () => {
    const run = await runBinary(['run', 'x', '--intelligence', await deadEndpoint()]);
    expect(run.exit).toEqual({ code: EXIT.INTELLIGENCE, signal: null });
    expect(run.named('intel.result').length).toBeGreaterThan(0);
    expectContractLines(run);
  });

  it('4 when the model endpoint refuses the credential', async () => {
    const server = await startModelServer([{ kind: 'status', status: 401 }]);
    closing.push(server.close);
    const run = await runBinary(['run', 'x', '--intelligence', server.origin], {
      AGENT_INTELLIGENCE_TOKEN: 'sk-wrong',
    });
    expect(run.exit).toEqual({ code: EXIT.INTELLIGENCE, signal: null });
    expect(run.named('intel.result')).toContainEqual(
      expect.objectContaining({ err: expect.objectContaining({ type: 'auth' }) }),
    );
    expectContractLines(run);
  });

  it('6 when a required MCP server cannot be reached, in once and in reactive mode', async () => {
    const endpoint = await deadEndpoint();
    const start = (mode: string) =>
      runBinary([
        ...['run', 'x', '--mode', mode, '--intelligence', FINAL, '--mcp', `gone=${endpoint}/mcp`],
        ...['--subscribe', 'gone:a:///x', '--report-file', folder.path(`mcp-${mode}.json`)],
      ]);
    const runs = await Promise.all([start('once'), start('reactive')]);
    for (const run of runs) {
      expect(run.exit).toEqual({ code: EXIT.MCP, signal: null });
      expect(run.named('mcp.connect.fail').length).toBeGreaterThan(0);
      expectContractLines(run);
    }
    expect(report(folder.path('mcp-once.json'))).toMatchObject({ status: 'crashed', exit_code: EXIT.MCP });
    expect(existsSync(folder.path('mcp-reactive.json'))).toBe(false);
  });

  it('6 when a required MCP server dies for good while a run is under way', async () => {
    const path = folder.path('mcp-died.json');
    // Comes up once, answers the handshake and goes; started again it goes at once.
    const server = folder.file(
      'dies.mjs',
      `import { existsSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
const mark = ${JSON.stringify(folder.path('came-up'))};
if (existsSync(mark)) process.exit(1);
const answer = (id, result) => console.log(JSON.stringify({ jsonrpc: '2.0', id, result }));
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === 'initialize') answer(id, { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'dies', version: '1' } });
  else if (method === 'tools/list') {
    answer(id, { tools: [] });
    writeFileSync(mark, '');
    setTimeout(() => process.exit(1), 500);
  } else if (id !== undefined) answer(id, {});
});
`,
    );
    const run = await runBinary([
      'run',
      'x',
      '--intelligence',
      script('hang', [{ hang: true }]),
      '--drain-timeout',
      '2s',
      '--mcp',
      `dies=stdio:${process.execPath} ${server}`,
      '--report-file',
      path,
    ]);
    expect(run.exit).toEqual({ code: EXIT.MCP, signal: null });
    expect(report(path)).toMatchObject({ status: 'crashed', exit_code: EXIT.MCP });
    expect(run.named('mcp.disconnect').length).toBeGreaterThan(0);
    expectContractLines(run);
  });
});

const UNSHARE = ['--fork', '--pid', '--mount-proc', '--kill-child'];
const mayUnshare = spawnSync('unshare', [...UNSHARE, 'true']).status === 0;

describe('exit 143', () => {
  it.skipIf(!mayUnshare)('is a code where the signal cannot kill, as PID 1 of a namespace', async () => {
    // The shell becomes PID 1 and then agentd; what it left behind tells it twice, as its log goes on.
    const log = folder.path('pid-1.log');
    const logged = (event: string): string => `until grep -q '"${event}"' ${log}; do sleep 0.05; done`;
    const teller = `${logged('loop.start')}; kill -TERM 1; ${logged('drain.start')}; sleep 0.5; kill -TERM 1`;
    const shell = `: > ${log}; (${teller}) & exec "$0" "$@" 2> ${log}`;
    const flags = ['run', 'x', '--intelligence', script('spin', [{ spin: true }]), '--log-format', 'json'];
    const args = [...UNSHARE, 'sh', '-c', shell, process.execPath, AGENTD, ...flags];
    const { exitCode, signal } = await execa('unshare', args, { reject: false, stdin: 'ignore' });
    expect(readFileSync(log, 'utf8')).toContain('"pid":1,');
    expect({ exitCode, signal }).toEqual({ exitCode: EXIT.FORCED, signal: undefined });
  });
});

describe('--budget-exit-code', () => {
  it.each([
    ['a spent budget', [{ text: ' ' }, { text: ' ' }], ['--max-steps', '1'], 42],
    ['a partial', [{ text: 'so far' }], ['--max-steps', '1'], 42],
    ['a refusal', [{ refuse: 'no' }], [], EXIT.SEMANTIC],
    ['a crash', [{ crash: 3 }], [], EXIT.FAILURE],
    ['a deadline', [{ hang: true }], ['--deadline', '500ms'], EXIT.TIMEOUT],
    ['a model that is gone', [{ fail: 'unreachable' }], [], EXIT.INTELLIGENCE],
    ['success', [{ final: 'done' }], [], EXIT.OK],
  ])('on %s', async (what, turns, flags, code) => {
    const path = folder.path(`budget-${what}.json`);
    const run = await runBinary([
      'run',
      'x',
      '--intelligence',
      script(what, turns),
      '--budget-exit-code',
      '42',
      '--report-file',
      path,
      ...flags,
    ]);
    expect(run.exit).toEqual({ code, signal: null });
    expect(report(path)).toMatchObject({ exit_code: code });
  });
});

describe('a process that runs more than once', () => {
  it('in loop mode ends with 0 at its lifetime budget, a clean bound', async () => {
    const path = folder.path('loop.json');
    const run = await runBinary([
      'run',
      'x',
      '--mode',
      'loop',
      '--intelligence',
      FINAL,
      '--budget-tokens-lifetime',
      '100',
      '--report-file',
      path,
    ]);
    expect(run.exit).toEqual({ code: EXIT.OK, signal: null });
    expect(run.stdout).toBe('done\ndone\ndone\n');
    expect(report(path)).toMatchObject({
      mode: 'loop',
      status: 'completed',
      exit_code: 0,
      usage: { tokens_in: 90, tokens_out: 30, steps: 3 },
    });
    expect(run.named('limit.exceeded')).toMatchObject([{ limit: 'tokens_lifetime' }]);
    expectContractLines(run);
  });

  it('in loop mode ends with 5 when the agent refuses', async () => {
    const run = await runBinary([
      'run',
      'x',
      '--mode',
      'loop',
      '--intelligence',
      script('loop-refuse', [{ refuse: 'no' }]),
    ]);
    expect(run.exit).toEqual({ code: EXIT.SEMANTIC, signal: null });
  });

  it('in schedule mode survives failed runs and ends with 0 when it is drained', async () => {
    const path = folder.path('schedule.json');
    const run = new Binary([
      'run',
      'x',
      '--mode',
      'schedule',
      '--interval',
      '300ms',
      '--intelligence',
      script('crash', [{ crash: 9 }]),
      '--report-file',
      path,
    ]);
    await run.line(
      'a second run',
      ({ event }) => event === 'subagent.exit' && run.named('subagent.exit').length > 1,
    );
    expect(await run.stop()).toEqual({ code: EXIT.OK, signal: null });
    expect(report(path)).toMatchObject({ mode: 'schedule', exit_code: 0 });
    expect(run.named('trigger.fired').length).toBeGreaterThan(1);
    expectContractLines(run);
  });

  it('in reactive mode exits with 0 after a drain and with nothing on standard output', async () => {
    const run = new Binary([
      'supervise',
      '--interval',
      '300ms',
      '--instruction',
      'x',
      '--intelligence',
      script('refuse', [{ refuse: 'no' }]),
    ]);
    await run.line(
      'a second run',
      ({ event }) => event === 'subagent.exit' && run.named('subagent.exit').length > 1,
    );
    expect(await run.stop()).toEqual({ code: EXIT.OK, signal: null });
    expect(run.stdout).toBe('');
    expectContractLines(run);
  });
});
