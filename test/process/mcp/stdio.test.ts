import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { AgentdError } from '../../../protocol/errors.ts';
import { eventually } from '../../helpers/eventually.ts';
import { PeerHarness, stdioServer } from '../../helpers/peer-harness.ts';

const FIXTURE = fileURLToPath(new URL('../../fixtures/mcp/stdio-server.mjs', import.meta.url));
const CALL = { timeoutMs: 20_000 };

let folder = '';
const harnesses: PeerHarness[] = [];

function command(...faults: string[]): [string, ...string[]] {
  return [process.execPath, FIXTURE, `--starts=${join(folder, 'starts')}`, ...faults];
}

function harness(...args: ConstructorParameters<typeof PeerHarness>): PeerHarness {
  const made = new PeerHarness(...args);
  harnesses.push(made);
  return made;
}

/** Every process the fixtures started, in order. */
async function startedPids(): Promise<number[]> {
  const text = await readFile(join(folder, 'starts'), 'utf8').catch(() => '');
  return text.trim().split('\n').filter(Boolean).map(Number);
}

function alive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'agentd-stdio-'));
});

afterEach(async () => {
  await Promise.all(harnesses.splice(0).map(({ peers }) => peers.close(10_000)));
  const pids = await startedPids();
  await rm(folder, { recursive: true });
  expect(pids.filter(alive)).toEqual([]);
});

describe('a stdio MCP server', () => {
  it('is started, subscribed to, called and ended with the connection', async () => {
    const h = harness([stdioServer('local', command())]);
    h.peers.watch('local', 'b://*');
    await h.peers.start();
    await h.complete('local');
    expect([...h.updates].sort()).toEqual(['reread b://1', 'reread b://2']);
    const peer = h.peers.get('local');
    const answer = await peer?.callTool('echo', { a: 1 }, CALL);
    expect(answer).toEqual({ isError: false, text: '{"a":1}', structured: undefined });
    await peer?.callTool('change', { uri: 'b://2' }, CALL);
    expect(h.updates.at(-1)).toBe('notification b://2');
  });

  it('gets its own secrets late and nothing else of our environment', async () => {
    process.env.AGENTD_TEST_SECRET = 'first';
    process.env.AGENTD_TEST_UNRELATED = 'must not arrive';
    const server = stdioServer('local', command());
    const transport = {
      ...server.transport,
      kind: 'stdio' as const,
      command: command(),
      cwd: folder,
      env: { TOKEN: { secret: 'env' as const, name: 'AGENTD_TEST_SECRET' }, PLAIN: 'as written' },
    };
    const h = harness([{ ...server, transport }]);
    process.env.AGENTD_TEST_SECRET = 'second';
    try {
      await h.peers.start();
      const answer = await h.peers.get('local')?.callTool('env', {}, CALL);
      const env: unknown = JSON.parse(answer?.text ?? '');
      expect(env).toMatchObject({ TOKEN: 'second', PLAIN: 'as written' });
      expect(env).not.toHaveProperty('AGENTD_TEST_UNRELATED');
      expect(env).not.toHaveProperty('AGENTD_TEST_SECRET');
      expect(JSON.stringify(h.lines)).not.toContain('second');
    } finally {
      delete process.env.AGENTD_TEST_SECRET;
      delete process.env.AGENTD_TEST_UNRELATED;
    }
  });

  it('is started again after it left in the middle of a call, which fails at once', async () => {
    const h = harness([stdioServer('local', command())]);
    h.peers.watch('local', 'b://1');
    await h.peers.start();
    await h.complete('local');
    const call = h.peers.get('local')?.callTool('exit', {}, CALL);
    await expect(call).rejects.toMatchObject({ code: 'MCP_UNAVAILABLE' });
    await h.until('its return', () => h.updates.length === 2);
    expect(h.messages.find(({ type }) => type === 'peer.down')).toMatchObject({
      reason: 'it exited with code 7: leaving in the middle of a call',
    });
    expect(await startedPids()).toHaveLength(2);
  });

  it('that is required and keeps crashing opens the breaker and ends the start with exit 6', async () => {
    const h = harness([stdioServer('local', command('crash-at-start'))]);
    const error = await h.peers.start().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(AgentdError);
    expect(error).toMatchObject({ code: 'MCP_UNAVAILABLE', exitCode: 6 });
    expect(String(error)).toContain(process.execPath);
    expect(String(error)).toContain('the fixture cannot find its database');
    expect(h.messages.map(({ type }) => type)).toEqual(['peer.failed']);
    expect(await startedPids()).toHaveLength(2);
  });

  it('whose program does not exist is named in the error', async () => {
    const h = harness([stdioServer('local', [join(folder, 'no such program'), '--token=hush'])]);
    const error = await h.peers.start().catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'MCP_UNAVAILABLE', exitCode: 6 });
    expect(String(error)).toContain(`there is no program ${join(folder, 'no such program')}`);
    expect(String(error)).not.toContain('hush');
    expect(String(error)).not.toContain('not running');
    const failures = h.lines.filter(({ event }) => event === 'mcp.connect.fail');
    expect(failures[0]?.fields).toMatchObject({
      msg: `MCP server local cannot be started: there is no program ${join(folder, 'no such program')}`,
      remedy: `Install ${join(folder, 'no such program')}, or correct the command or cwd of local under mcp.servers (or --mcp).`,
    });
  });

  it.each([
    [
      'is in no folder of PATH',
      'no-such-program-anywhere',
      undefined,
      /there is no program no-such-program-anywhere in PATH$/,
    ],
    [
      'may not be executed',
      'plain.txt',
      undefined,
      /plain\.txt may not be executed by this user, or is no file/,
    ],
    ['is a folder', '.', undefined, /may not be executed by this user, or is no file/],
    [
      'has no folder to work in',
      process.execPath,
      'absent',
      /its working directory \S*absent does not exist/,
    ],
  ])('whose program %s is told apart', async (_name, program, cwd, said) => {
    await writeFile(join(folder, 'plain.txt'), '');
    const named = program.startsWith('no-such') || program.startsWith('/') ? program : join(folder, program);
    const server = stdioServer('local', [named]);
    const transport = {
      ...server.transport,
      kind: 'stdio' as const,
      command: [named] as const,
      env: {},
      cwd: cwd === undefined ? null : join(folder, cwd),
    };
    const h = harness([{ ...server, transport }]);
    const error = await h.peers.start().catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'MCP_UNAVAILABLE', exitCode: 6 });
    expect(String(error)).toMatch(said);
  });

  it('that prints a banner and floods stderr is understood, and only some of the noise is kept', async () => {
    const h = harness([stdioServer('local', command('banner', 'flood-stderr'))]);
    await h.peers.start();
    const answer = await h.peers.get('local')?.callTool('echo', { still: 'here' }, CALL);
    expect(answer?.text).toBe('{"still":"here"}');
    const kept = h.lines.filter(({ fields }) => typeof fields.stderr === 'string').length;
    expect(kept).toBeGreaterThan(0);
    expect(kept).toBeLessThan(2_000);
  });

  it('that sends a message over the cap is ended and started again', async () => {
    const h = harness([stdioServer('local', command())], { timings: { maxMessageBytes: 200_000 } });
    await h.peers.start();
    const peer = h.peers.get('local');
    expect((await peer?.callTool('big', { bytes: 199_000 }, CALL))?.text).toHaveLength(199_000);
    await expect(peer?.callTool('big', { bytes: 300_000 }, CALL)).rejects.toMatchObject({
      code: 'MCP_UNAVAILABLE',
    });
    await h.until('its return', () => h.messages.filter(({ type }) => type === 'peer.up').length === 2);
    expect((await peer?.callTool('big', { bytes: 10 }, CALL))?.text).toBe('xxxxxxxxxx');
  });

  it('that no longer reads is noticed by its pings', async () => {
    const h = harness([stdioServer('local', command('stays'))], { timings: { pingMs: 500 } });
    await h.peers.start();
    await h.peers.get('local')?.callTool('deaf', {}, CALL);
    await h.until('the loss', () => h.messages.some(({ type }) => type === 'peer.down'));
    await h.until('its return', () => h.messages.filter(({ type }) => type === 'peer.up').length === 2);
    expect(await startedPids()).toHaveLength(2);
  });

  it('that ignores SIGTERM and has a child of its own leaves nothing behind', async () => {
    const h = harness([stdioServer('local', command('ignore-sigterm', 'stays', 'grandchild'))]);
    await h.peers.start();
    const pids = await startedPids();
    expect(pids).toHaveLength(2);
    expect(pids.filter(alive)).toHaveLength(2);
    await h.peers.close(20_000);
    await eventually('the group to be gone', () => pids.filter(alive).length === 0);
    expect(pids.filter(alive)).toEqual([]);
  });
});
