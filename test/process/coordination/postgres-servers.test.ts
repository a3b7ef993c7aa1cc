import { once } from 'node:events';
import { Client } from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { META } from '../../../protocol/work-tools.ts';
import { DEFAULT_POLICY } from '../../../supervisor/coordination/ledger.ts';
import { POOL_SIZE } from '../../../supervisor/coordination/postgres/connections.ts';
import { PostgresLedger } from '../../../supervisor/coordination/postgres/postgres-ledger.ts';
import { type CoordinatorProcess, startCoordinatorProcess } from '../../helpers/coordinator-process.ts';
import { eventually } from '../../helpers/eventually.ts';
import { ask, POSTGRES_MISSING, type PostgresServer, startPostgres } from '../../helpers/postgres.ts';
import { runVerb } from '../../helpers/run-verb.ts';
import { connectSdkClient, type TestClient } from '../../helpers/sdk-client.ts';

if (POSTGRES_MISSING !== null) console.warn(POSTGRES_MISSING);

describe.skipIf(POSTGRES_MISSING !== null)('coordination over one PostgreSQL', () => {
  let server: PostgresServer;
  let url: string;
  const ledgers: PostgresLedger[] = [];
  const processes: CoordinatorProcess[] = [];
  const clients: TestClient[] = [];

  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server.stop());
  beforeEach(async () => {
    url = await server.createDatabase();
  });
  afterEach(async () => {
    for (const client of clients.splice(0)) await client.close();
    for (const each of processes.splice(0)) if (each.process.exitCode === null) await each.stop();
    for (const ledger of ledgers.splice(0)) await ledger.close();
  });

  async function open(): Promise<PostgresLedger> {
    const ledger = await PostgresLedger.open({ url, policy: DEFAULT_POLICY });
    ledgers.push(ledger);
    return ledger;
  }
  const request = (key: string, holder = 'h') => ({ key, item: key, holder, ttlMs: 60_000 });
  const work = (key: string, more: object = {}) => ({
    key,
    item: key,
    kind: 'default',
    tenant: 'default',
    priority: 'normal' as const,
    maxAttempts: null,
    delayMs: 0,
    dependsOn: [],
    ...more,
  });

  it('lets servers that start at once take turns to migrate', async () => {
    const opened = await Promise.all(Array.from({ length: 6 }, open));
    const answers = await Promise.all(opened.map((ledger, index) => ledger.claim(request('k', `h${index}`))));
    expect(answers.filter((answer) => answer.granted)).toHaveLength(1);
    expect(await ask(url, 'SELECT component, version FROM agentd.agentd_schema')).toHaveLength(1);
  });

  it('refuses an unknown schema version by name, without the password of the URL', async () => {
    await (await open()).close();
    await ask(url, 'UPDATE agentd.agentd_schema SET version = 42');
    const withPassword = url.replace('agentd@', 'agentd:hunter2@');
    const ended = await runVerb(['coordinate', '--db', withPassword, '--log-level', 'error']);
    expect(ended.code).toBe(2);
    expect(ended.stderr).toMatch(/postgres:\/\/127\.0\.0\.1:\d+\/test_\d+ has ledger schema version 42/);
    expect(ended.stderr).not.toContain('hunter2');
    expect(ended.stdout).not.toContain('hunter2');
  });

  it('says that a database cannot be reached, or does not exist, in a sentence', async () => {
    const cases: [string, RegExp][] = [
      [
        'postgres://agentd:hunter2@127.0.0.1:1/none',
        /ledger postgres:\/\/127\.0\.0\.1:1\/none cannot be opened: .*ECONNREFUSED/,
      ],
      [server.url('nowhere'), /database "nowhere" does not exist/],
    ];
    for (const [db, message] of cases) {
      const ended = await runVerb(['coordinate', '--db', db, '--log-level', 'error']);
      expect(ended.code).toBe(1);
      expect(ended.stderr).toMatch(message);
      expect(ended.stderr).not.toContain('hunter2');
    }
  });

  it('hands every item out once and settles it once under contention of several servers', async () => {
    const opened = [await open(), await open(), await open()];
    const [first] = opened;
    if (first === undefined) throw new Error('no ledger');
    const total = 600;
    await Promise.all(
      Array.from({ length: total }, (_, index) =>
        first.submit(work(`k${index}`, { tenant: `t${index % 5}`, kind: `kind-${index % 3}` })),
      ),
    );
    const settled: string[] = [];
    const tokens: number[] = [];
    await Promise.all(
      Array.from({ length: 24 }, async (_, worker) => {
        const ledger = opened[worker % opened.length] ?? first;
        const holder = `w${worker}`;
        for (;;) {
          const next = { holder, ttlMs: 60_000, max: 1 + (worker % 4), kinds: null, tenants: null };
          const claimed = await ledger.claimNext(next);
          if (claimed.length === 0) {
            if ((await ledger.stats()).pending === 0) return;
            continue;
          }
          for (const { leaseId, workId, fencingToken } of claimed) {
            tokens.push(fencingToken);
            const answer = await ledger.ack({ leaseId, holder, result: null });
            if (answer.ok) settled.push(workId);
          }
        }
      }),
    );
    expect(settled).toHaveLength(total);
    expect(new Set(settled).size).toBe(total);
    expect(new Set(tokens).size).toBe(total);
    expect(await first.stats()).toMatchObject({ pending: 0, claimed: 0, done: total });
  });

  it('grants each of many new keys to one of the servers that race for it', async () => {
    const opened = [await open(), await open(), await open()];
    const keys = Array.from({ length: 150 }, (_, index) => `race-${index}`);
    const answers = await Promise.all(
      keys.flatMap((key) => opened.map((ledger, index) => ledger.claim(request(key, `h${index}`)))),
    );
    for (let index = 0; index < keys.length; index++) {
      const three = answers.slice(index * 3, index * 3 + 3);
      expect(three.filter((answer) => answer.granted)).toHaveLength(1);
    }
  });

  it('holds a quota over all servers', async () => {
    const policy = { ...DEFAULT_POLICY, tenantQuota: 7 };
    const opened = await Promise.all([1, 2, 3].map(() => PostgresLedger.open({ url, policy })));
    ledgers.push(...opened);
    const [first] = opened;
    if (first === undefined) throw new Error('no ledger');
    await Promise.all(
      Array.from({ length: 60 }, (_, index) => first.submit(work(`k${index}`, { tenant: 't' }))),
    );
    const next = { holder: 'h', ttlMs: 60_000, max: 3, kinds: null, tenants: null };
    const batches = await Promise.all(
      Array.from({ length: 30 }, (_, index) => (opened[index % 3] ?? first).claimNext(next)),
    );
    expect(batches.flat()).toHaveLength(7);
  });

  it('stays within its pool, however many ask at once', async () => {
    const ledger = await open();
    await Promise.all(Array.from({ length: 500 }, (_, index) => ledger.claim(request(`k${index}`))));
    await Promise.all(Array.from({ length: 200 }, () => ledger.stats()));
    const [row] = await ask(
      url,
      `SELECT count(*)::int AS held FROM pg_stat_activity
       WHERE datname = current_database() AND application_name = 'agentd-coordinate'`,
    );
    expect((row as { held: number }).held).toBeLessThanOrEqual(POOL_SIZE + 1);
  });

  it('tells what became claimable at one server to the listeners of the others', async () => {
    const [one, two] = [await open(), await open()];
    const news = new Promise<void>((resolve) => two.onPending(resolve));
    await one.submit(work('k'));
    await news;
  });

  it('takes empty lanes away and keeps what is submitted at the same moment claimable', async () => {
    const ledger = await open();
    const lanes = 300;
    await Promise.all(Array.from({ length: lanes }, (_, index) => ledger.claim(request(`x${index}`))));
    await Promise.all(
      Array.from({ length: lanes }, (_, index) => ledger.submit(work(`k${index}`, { tenant: `t${index}` }))),
    );
    const all = { holder: 'h', ttlMs: 60_000, max: 256, kinds: null, tenants: null };
    const taken = [...(await ledger.claimNext(all)), ...(await ledger.claimNext(all))];
    expect(taken).toHaveLength(lanes);
    const prune = async (): Promise<void> => {
      for (let round = 0; round < 400; round++) await ledger.tend();
    };
    const resubmit = Array.from({ length: lanes }, (_, index) =>
      ledger.submit(work(`again${index}`, { tenant: `t${index}` })),
    );
    await Promise.all([prune(), ...resubmit]);
    let found = 0;
    for (;;) {
      const more = await ledger.claimNext(all);
      if (more.length === 0) break;
      found += more.length;
    }
    expect(found).toBe(lanes);
    await prune();
    const [row] = await ask(url, 'SELECT count(*)::int AS lanes FROM agentd.work_lane');
    expect((row as { lanes: number }).lanes).toBeLessThan(lanes);
  });

  it('survives a restart of the database: claims are kept, calls succeed again, listeners hear', async () => {
    const ledger = await open();
    const lease = await ledger.claim(request('kept'));
    if (!lease.granted) throw new Error('not granted');
    const restarted = server.restart();
    await restarted;
    const answer = await eventually('the ledger to answer again', async () =>
      ledger.ack({ leaseId: lease.leaseId, holder: 'h', result: '1' }),
    );
    expect(answer).toMatchObject({ ok: true });
    expect(await ledger.find('kept')).toMatchObject({ state: 'done', result: '1' });
    const other = await open();
    let heard = false;
    ledger.onPending(() => {
      heard = true;
    });
    let submitted = 0;
    await eventually('the listener to hear another server', async () => {
      if (!heard) await other.submit(work(`news-${submitted++}`));
      return heard;
    });
  });

  it('fails calls with a retryable error while the database is away, and never hangs', async () => {
    const ledger = await open();
    const admin = new Client({ connectionString: server.url('postgres') });
    await admin.connect();
    const name = new URL(url).pathname.slice(1);
    await admin.query(`ALTER DATABASE ${name} ALLOW_CONNECTIONS false`);
    await admin.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1`, [name]);
    await expect(ledger.claim(request('k'))).rejects.toMatchObject({
      code: 'LEDGER_UNAVAILABLE',
      kind: 'retry',
    });
    await expect(ledger.ping()).rejects.toMatchObject({ code: 'LEDGER_UNAVAILABLE' });
    await admin.query(`ALTER DATABASE ${name} ALLOW_CONNECTIONS true`);
    await admin.end();
    const answer = await eventually('claims to be granted again', () => ledger.claim(request('k')));
    expect(answer.granted).toBe(true);
  });

  it('runs several agentd coordinate side by side, any of which may die', async () => {
    const started = await Promise.all([1, 2].map(() => startCoordinatorProcess(['--db', url])));
    processes.push(...started);
    const [one, two] = started;
    if (one === undefined || two === undefined) throw new Error('not started');
    const [left, right] = [await connectSdkClient(one.url), await connectSdkClient(two.url)];
    clients.push(left, right);
    await right.client.subscribeResource({ uri: 'work://pending' });
    const call = async ({ client }: TestClient, name: string, args: Record<string, unknown>) =>
      (await client.callTool({ name, arguments: args, _meta: { [META.INSTANCE]: 'a' } }))
        .structuredContent as Record<string, unknown>;
    await call(left, 'work.submit', { item: 'x' });
    await eventually('word of it at the other server', () => right.updated.includes('work://pending'));
    const lease = await call(left, 'work.claim', { item: 'x', ttl_ms: 60_000 });
    expect(lease).toMatchObject({ granted: true });
    one.process.kill('SIGKILL');
    await once(one.process, 'exit');
    expect(await call(right, 'work.renew', { lease_id: lease.lease_id, ttl_ms: 60_000 })).toMatchObject({
      ok: true,
    });
    expect(await call(right, 'work.ack', { lease_id: lease.lease_id })).toEqual({ ok: true });
    expect(await two.stop()).toEqual({ code: 0, signal: null });
  });
});
