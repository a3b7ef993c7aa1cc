import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { META } from '../../../protocol/work-tools.ts';
import { type CoordinatorProcess, startCoordinatorProcess } from '../../helpers/coordinator-process.ts';
import { eventually } from '../../helpers/eventually.ts';
import { runAgentd } from '../../helpers/run-agentd.ts';
import { connectSdkClient, type TestClient } from '../../helpers/sdk-client.ts';

describe('agentd coordinate', () => {
  let folder: string;
  let db: string;
  const running: CoordinatorProcess[] = [];
  const clients: TestClient[] = [];

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'agentd-coordinate-'));
    db = join(folder, 'ledger.db');
  });
  afterEach(async () => {
    for (const client of clients.splice(0)) await client.close();
    for (const coordinator of running.splice(0))
      if (coordinator.process.exitCode === null) await coordinator.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  async function start(...args: string[]): Promise<CoordinatorProcess> {
    const coordinator = await startCoordinatorProcess(['--db', db, ...args]);
    running.push(coordinator);
    return coordinator;
  }
  async function client(url: string): Promise<TestClient> {
    const connected = await connectSdkClient(url);
    clients.push(connected);
    return connected;
  }
  async function call(
    { client: sdk }: TestClient,
    name: string,
    args: Record<string, unknown>,
    instance = 'a',
  ) {
    const request = { name, arguments: args, _meta: { [META.INSTANCE]: instance } };
    return (await sdk.callTool(request)).structuredContent as Record<string, unknown>;
  }

  it('serves claims, keeps them over a kill -9, and expires them without being asked', async () => {
    const first = await start();
    const before = await client(first.url);
    const lease = await call(before, 'work.claim', { item: 'file:///a', ttl_ms: 60_000 });
    expect(lease).toMatchObject({ granted: true });
    await call(before, 'work.claim', { item: 'file:///b', ttl_ms: 1_500 });
    first.process.kill('SIGKILL');
    await once(first.process, 'exit');

    const second = await start();
    const after = await client(second.url);
    expect(await call(after, 'work.claim', { item: 'file:///a', ttl_ms: 1_000 }, 'b')).toMatchObject({
      granted: false,
      held_by: 'a',
    });
    expect(await call(after, 'work.ack', { lease_id: lease.lease_id })).toEqual({ ok: true });
    await after.client.subscribeResource({ uri: 'work://pending' });
    await eventually('the expiry of b', async () => (await call(after, 'work.stats', {})).pending === 1);
    await eventually('word of it', () => after.updated.includes('work://pending'));
    expect(second.log.some((line) => line.event === 'claim.expired')).toBe(true);
    expect(await call(after, 'work.claim', { item: 'file:///b', ttl_ms: 1_000 }, 'b')).toMatchObject({
      granted: true,
      attempt: 2,
    });
  });

  it('drains on SIGTERM with exit 0 while an idle client keeps its connection', async () => {
    const coordinator = await start();
    const { hostname, port } = new URL(coordinator.url);
    const idle = connect(Number(port), hostname);
    await once(idle, 'connect');
    idle.write('GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n');
    await once(idle, 'data');
    const subscriber = await client(coordinator.url);
    await subscriber.client.subscribeResource({ uri: 'work://pending' });
    const closed = once(idle, 'close');
    const began = performance.now();
    expect(await coordinator.stop()).toEqual({ code: 0, signal: null });
    expect(performance.now() - began).toBeLessThan(5_000);
    await closed;
    expect(coordinator.log.map((line) => line.event)).toEqual(
      expect.arrayContaining(['proc.start', 'proc.ready', 'proc.shutdown', 'proc.exit']),
    );
    expect(existsSync(`${db}-wal`)).toBe(false);
  });

  it('serves one file from two processes side by side', async () => {
    const [one, two] = await Promise.all([start(), start()]);
    const [left, right] = [await client(one.url), await client(two.url)];
    await right.client.subscribeResource({ uri: 'work://pending' });
    await call(left, 'work.submit', { item: 'x' });
    await eventually('word of it at the other process', () => right.updated.length > 0);
    const claims = await Promise.all([
      call(left, 'work.claim', { item: 'x', ttl_ms: 9_000 }, 'a'),
      call(right, 'work.claim', { item: 'x', ttl_ms: 9_000 }, 'b'),
    ]);
    expect(claims.filter((claim) => claim.granted)).toHaveLength(1);
  });

  it('refuses what it cannot use with a sentence and exit 2', async () => {
    const text = join(folder, 'text.db');
    writeFileSync(text, 'no database at all, but long enough to hold a header. '.repeat(40));
    const newer = join(folder, 'newer.db');
    const made = new Sqlite(newer);
    made.exec('CREATE TABLE agentd_schema (component TEXT PRIMARY KEY, version INTEGER NOT NULL)');
    made.exec("INSERT INTO agentd_schema VALUES ('ledger', 7)");
    made.close();
    const busy = await start();
    const cases: [string[], RegExp][] = [
      [['--db', text], /ledger .*text\.db cannot be opened: file is not a database/],
      [['--db', newer], /newer\.db has ledger schema version 7; this build knows versions up to \d+/],
      [['--db', join(folder, 'none', 'x.db')], /none.x\.db cannot be opened/],
      [['--db', db, '--listen', new URL(busy.url).origin], /the port is in use/],
      [['--db', db, '--listen', 'http://0.0.0.0:0'], /http:\/\/ is only allowed on loopback/],
      [['--db', db, '--listen', 'https://127.0.0.1:0'], /needs a certificate and key/],
      [['--db', db, '--max-attempts', '0'], /--max-attempts "0" is not a whole number from 1/],
      [['--db', db, '--dedupe-horizon', 'soon'], /--dedupe-horizon "soon" is not a duration/],
      [['--db', db, '--tls-cert', 'x'], /--tls-cert and --tls-key go together/],
      [['--db', db, '--bearer-file', join(folder, 'absent')], /absent cannot be read/],
      [['--db', db, '--tenant-qouta', '3'], /unknown option '--tenant-qouta'/],
    ];
    for (const [args, message] of cases) {
      const ended = await runAgentd(['coordinate', ...args]);
      expect(ended.stderr).toMatch(message);
      expect({ args, code: ended.code }).toEqual({ args, code: 2 });
      expect(ended.stderr).not.toMatch(/\n\s+at /);
    }
  });

  it('takes its settings from the environment when no flag is given', async () => {
    const coordinator = await startCoordinatorProcess([], {
      AGENT_COORDINATE_DB: db,
      AGENT_COORDINATE_MAX_ATTEMPTS: '1',
      AGENT_COORDINATE_TENANT_QUOTA: '',
    });
    running.push(coordinator);
    const connected = await client(coordinator.url);
    const lease = await call(connected, 'work.claim', { item: 'x', ttl_ms: 9_000 });
    await call(connected, 'work.release', { lease_id: lease.lease_id, reason: 'crashed' });
    expect(await call(connected, 'work.stats', {})).toMatchObject({ deadletter: 1 });
  });
});
