import { describe, expect, it } from 'vitest';
import { AgentdError } from '../../../protocol/errors.ts';
import { inShard } from '../../../supervisor/gates/shard-gate.ts';
import type { ResourceInfo } from '../../../supervisor/mcp/peers.ts';
import { Timers } from '../../../supervisor/reactor/timers.ts';
import { Intake } from '../../../supervisor/routing/intake.ts';
import { ShardLookup } from '../../../supervisor/routing/shard-lookup.ts';
import { ManualClock } from '../../helpers/manual-clock.ts';
import { recordingLog } from '../../helpers/null-log.ts';
import { recordingMetrics } from '../../helpers/peer-harness.ts';
import { routeConfig } from '../../helpers/route-config.ts';

const info = (uri: string, meta: Record<string, unknown>): ResourceInfo => ({
  uri,
  name: uri,
  mimeType: null,
  size: null,
  lastModified: null,
  meta,
});

/** One replica's intake over resources that are looked at when the test says so. */
function replica(index: number, count: number) {
  const clock = new ManualClock();
  const timers = new Timers(clock);
  const { log, lines } = recordingLog();
  const { metrics, values } = recordingMetrics();
  const asked: { uri: string; resolve(info: ResourceInfo | null): void; reject(error: Error): void }[] = [];
  const looks = new ShardLookup({
    clock,
    timers,
    describe: (_, uri) => new Promise((resolve, reject) => asked.push({ uri, resolve, reject })),
    found: (looked) => intake.placed(looked, clock.now()),
    log,
    metrics,
    random: () => 0.5,
  });
  const intake = new Intake(
    {
      routes: [routeConfig({ shardKey: { kind: 'metadata', pointer: '/tenant' }, queueCap: 100_000 })],
      shard: { index, count, timer: 'shard0' },
    },
    log,
    metrics,
    () => 16,
    looks,
  );
  const hear = (uri: string): void => {
    intake.hear({ server: 's', uri, cause: 'notification', at: clock.now() }, clock.now());
  };
  const later = (ms: number): void => {
    clock.advance(ms);
    timers.runDue();
  };
  return { hear, later, asked, looks, intake, lines, values, clock, done: () => timers.clearAll() };
}

/** Lets settled promises be heard of. */
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('an item whose shard is in its metadata', () => {
  it('goes to the one shard its tenant belongs to, wherever it is heard', async () => {
    const tenants = ['acme', 'globex', 'initech', 'umbrella'];
    const replicas = [0, 1, 2].map((index) => replica(index, 3));
    for (const [index, one] of replicas.entries()) {
      for (const [at, tenant] of tenants.entries()) {
        one.hear(`test:///${at}`);
        one.asked.at(-1)?.resolve(info(`test:///${at}`, { tenant }));
      }
      await settle();
      const mine = tenants.filter((tenant) => inShard(tenant, index, 3));
      expect(one.intake.waiting).toBe(mine.length);
      expect(one.values.get('agent_shard_skipped_total') ?? 0).toBe(tenants.length - mine.length);
    }
    expect(replicas.reduce((sum, { intake }) => sum + intake.waiting, 0)).toBe(tenants.length);
  });

  it('without that metadata goes by its URI, on every replica alike', async () => {
    const waiting = await Promise.all(
      [0, 1].map(async (index) => {
        const one = replica(index, 2);
        one.hear('test:///x');
        one.asked[0]?.resolve(info('test:///x', {}));
        await settle();
        return one.intake.waiting;
      }),
    );
    expect(waiting[0]).toBe(inShard('test:///x', 0, 2) ? 1 : 0);
    expect(waiting[1]).toBe(inShard('test:///x', 1, 2) ? 1 : 0);
  });

  it('is looked at again when that failed, counts as backlog meanwhile, and is never guessed', async () => {
    const one = replica(0, 2);
    one.hear('test:///x');
    for (let tries = 1; tries <= 20; tries++) {
      expect(one.asked).toHaveLength(tries);
      one.asked[tries - 1]?.reject(new AgentdError('MCP_UNAVAILABLE', 'the server is away'));
      await settle();
      expect(one.intake.waiting).toBe(1);
      one.later(30_000);
    }
    expect(one.intake.lag(one.clock.now())).toBe(600_000);
    expect(one.values.size).toBe(0);
    one.asked[20]?.resolve(info('test:///x', { tenant: 'acme' }));
    await settle();
    expect(one.looks.waiting).toBe(0);
    expect(one.intake.waiting).toBe(inShard('acme', 0, 2) ? 1 : 0);
    one.done();
  });

  it('is dropped, with a warning, when its server answers six times that it cannot be read', async () => {
    const one = replica(0, 2);
    one.hear('test:///gone');
    for (let tries = 0; tries < 6; tries++) {
      one.asked[tries]?.reject(new AgentdError('MCP_PROTOCOL', 'no such resource'));
      await settle();
      one.later(30_000);
    }
    expect(one.asked).toHaveLength(6);
    expect(one.looks.waiting).toBe(0);
    expect(one.values.get('agent_dropped_events_total')).toBe(1);
    expect(one.lines).toContainEqual(expect.objectContaining({ event: 'shard.skipped', level: 'warn' }));
  });

  it('that changes while it is looked at is looked at once more', async () => {
    const one = replica(0, 1_000_003);
    one.hear('test:///x');
    one.hear('test:///x');
    one.hear('test:///x');
    expect(one.asked).toHaveLength(1);
    one.asked[0]?.resolve(info('test:///x', { tenant: 'before' }));
    await settle();
    expect(one.asked).toHaveLength(2);
    one.asked[1]?.resolve(info('test:///x', { tenant: 'after' }));
    await settle();
    expect(one.asked).toHaveLength(2);
    expect(one.looks.waiting).toBe(0);
  });

  it('is one of at most eight that are looked at together, and of 20000 that wait', async () => {
    const one = replica(0, 2);
    for (let count = 0; count < 20_001; count++) one.hear(`test:///${count}`);
    expect(one.asked).toHaveLength(8);
    expect(one.looks.waiting).toBe(20_000);
    expect(one.values.get('agent_dropped_events_total')).toBe(1);
    one.asked[0]?.resolve(null);
    await settle();
    expect(one.asked).toHaveLength(9);
  });

  it('needs no look when there is but one shard', () => {
    const one = replica(0, 1);
    one.hear('test:///x');
    expect(one.asked).toHaveLength(0);
    expect(one.intake.waiting).toBe(1);
  });
});
