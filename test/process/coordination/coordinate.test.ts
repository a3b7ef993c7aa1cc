import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { META } from '../../../protocol/work-tools.ts';
import { DEFAULT_POLICY } from '../../../supervisor/coordination/ledger.ts';
import { SqliteLedger } from '../../../supervisor/coordination/sqlite/sqlite-ledger.ts';
import { type CoordinatorProcess, startCoordinatorProcess } from '../../helpers/coordinator-process.ts';
import { eventually } from '../../helpers/eventually.ts';
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

  it('has on disk whatever it answered when it is killed under load', async () => {
    const coordinator = await start();
    const connected = await client(coordinator.url);
    const acked: string[] = [];
    let next = 0;
    const worker = async (): Promise<void> => {
      for (;;) {
        const item = `item-${next++}`;
        const lease = await call(connected, 'work.claim', { item, ttl_ms: 60_000 });
        const answer = await call(connected, 'work.ack', { lease_id: lease.lease_id, result: item });
        if (answer.ok === true) acked.push(item);
        if (acked.length === 120) coordinator.process.kill('SIGKILL');
      }
    };
    const workers = await Promise.allSettled(Array.from({ length: 16 }, worker));
    expect(workers.every((each) => each.status === 'rejected')).toBe(true);
    const ledger = await SqliteLedger.open({ path: db, policy: DEFAULT_POLICY });
    for (const item of acked)
      expect(await ledger.find(item)).toMatchObject({ state: 'done', result: `"${item}"` });
    await ledger.close();
    expect(acked.length).toBeGreaterThanOrEqual(120);
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
