import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { eventually } from '../../helpers/eventually.ts';
import { runAgentd } from '../../helpers/run-agentd.ts';
import { connectSdkClient, type TestClient } from '../../helpers/sdk-client.ts';
import { type ServingProcess, startServing } from '../../helpers/serving-process.ts';

describe('agentd inbox', () => {
  let base: string;
  let folder: string;
  const running: ServingProcess[] = [];
  const clients: TestClient[] = [];
  const sockets: Socket[] = [];

  beforeEach(() => {
    base = mkdtempSync(join(tmpdir(), 'agentd-inbox-process-'));
    folder = join(base, 'in');
    mkdirSync(folder);
  });
  afterEach(async () => {
    for (const client of clients.splice(0)) await client.close();
    for (const socket of sockets.splice(0)) socket.destroy();
    for (const each of running.splice(0)) await each.stop('SIGKILL');
    rmSync(base, { recursive: true, force: true });
  });

  async function start(...args: string[]): Promise<ServingProcess> {
    const inbox = await startServing(['inbox', folder, ...args]);
    running.push(inbox);
    return inbox;
  }
  async function client(url: string): Promise<TestClient> {
    const connected = await connectSdkClient(url);
    clients.push(connected);
    return connected;
  }
  const complete = (to: TestClient, key: string): ReturnType<TestClient['client']['callTool']> =>
    to.client.callTool({
      name: 'complete',
      arguments: { uri: 'inbox:///a.txt', result: 'done' },
      _meta: { 'agent/idempotency_key': key },
    });

  it('says where it listens, serves, and ends with 0 on SIGTERM in spite of clients that stay', async () => {
    writeFileSync(join(folder, 'a.txt'), 'hello');
    const inbox = await start();
    expect(inbox.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/mcp$/);
    const first = await client(inbox.url);
    await first.client.subscribeResource({ uri: 'inbox:///a.txt' });
    expect((await first.client.readResource({ uri: 'inbox:///a.txt' })).contents).toMatchObject([
      { text: 'hello' },
    ]);
    const idle = connect(Number(new URL(inbox.url).port), '127.0.0.1');
    sockets.push(idle);
    await once(idle, 'connect');
    expect(await inbox.stop('SIGTERM')).toEqual({ code: 0, signal: null });
    expect(inbox.log.map((line) => line.event)).toEqual(
      expect.arrayContaining(['proc.start', 'proc.ready', 'proc.shutdown', 'proc.exit']),
    );
  });

  it('ends with 0 on SIGINT', async () => {
    const inbox = await start();
    expect(await inbox.stop('SIGINT')).toEqual({ code: 0, signal: null });
  });

  it('keeps every answered result over kill -9, and none twice', async () => {
    writeFileSync(join(folder, 'a.txt'), 'hello');
    const inbox = await start('--results', join(base, 'results'));
    const caller = await client(inbox.url);
    const answered = new Set<string>();
    const calls = Promise.allSettled(
      Array.from({ length: 60 }, async (_, index) => {
        const answer = await complete(caller, `k${index}`);
        if (answer.isError !== true) answered.add(`k${index}`);
      }),
    );
    await eventually('some results', () => answered.size >= 20);
    await inbox.stop('SIGKILL');
    await calls;

    const again = await start('--results', join(base, 'results'));
    const second = await client(again.url);
    for (const key of answered) {
      expect((await complete(second, key)).structuredContent).toMatchObject({ ok: true, replayed: true });
    }
    for (let index = 0; index < 60; index++) await complete(second, `k${index}`);
    const names = readdirSync(join(base, 'results'));
    expect(names).toHaveLength(60);
    expect(names.filter((name) => !name.endsWith('.json'))).toEqual([]);
  });

  it('says what is wrong and exits 2, without a stack trace', async () => {
    writeFileSync(join(base, 'file'), '');
    const inbox = await start();
    const { origin } = new URL(inbox.url);
    const cases: readonly (readonly [args: readonly string[], says: string])[] = [
      [['inbox', join(base, 'none')], 'it does not exist'],
      [['inbox', join(base, 'file')], 'it is not a folder'],
      [['inbox', folder, '--results', join(base, 'file')], 'cannot keep results in'],
      [['inbox', folder], `another inbox keeps its results in ${join(folder, '.results')}`],
      [['inbox', folder, '--results', join(base, 'r1'), '--listen', origin], 'the port is in use'],
      [
        ['inbox', folder, '--results', join(base, 'r2'), '--listen', 'http://0.0.0.0:0'],
        'http:// is only allowed on loopback',
      ],
      [['inbox', folder, '--max-files', 'many'], '--max-files "many"'],
      [['inbox', folder, '--log-level', 'loud'], '--log-level "loud"'],
    ];
    const ended = await Promise.all(cases.map(([args]) => runAgentd(args)));
    for (const [index, [, says]] of cases.entries()) {
      expect(ended[index]?.stderr).toContain(says);
      expect(ended[index]?.stderr).not.toMatch(/\n\s+at /);
      expect([says, ended[index]?.code]).toEqual([says, 2]);
    }
  });

  it('frees its results folder however it ends, and not while it is only stopped', async () => {
    const first = await start();
    first.process.kill('SIGSTOP');
    expect(await runAgentd(['inbox', folder])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('Stop the other inbox, or give this one a folder of its own'),
    });
    await first.stop('SIGKILL');
    const second = await start();
    expect(await second.stop('SIGTERM')).toEqual({ code: 0, signal: null });
    const third = await start();
    expect(await third.stop('SIGTERM')).toEqual({ code: 0, signal: null });
  });

  // Root reads everything, so there is nothing to see then.
  it.skipIf(process.getuid?.() === 0)('does not serve a folder this user may not read', async () => {
    mkdirSync(join(base, 'locked'), { mode: 0o000 });
    const ended = await runAgentd(['inbox', join(base, 'locked')]);
    expect(ended.code).toBe(2);
    expect(ended.stderr).toContain('this user may not read it');
  });
});
