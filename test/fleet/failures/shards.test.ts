import { afterEach, describe, expect, it } from 'vitest';
import { inShard } from '../../../supervisor/gates/shard-gate.ts';
import { FailingFleet } from './failing-fleet.ts';

/** Routes of the flag replace those of the file: the same one, without its claim. */
const UNCLAIMED = ['--route', 'inbox:inbox:///**=>spawn,debounce=0'];

let fleet: FailingFleet | null = null;

afterEach(async () => {
  await fleet?.close();
  fleet = null;
});

async function start(options: Parameters<typeof FailingFleet.start>[0]): Promise<FailingFleet> {
  fleet = await FailingFleet.start(options);
  return fleet;
}

const names = (kind: string, from: number, count: number): string[] =>
  Array.from({ length: count }, (_, index) => `${kind}-${from + index}`);
const of = (items: readonly string[], index: number, count: number): string[] =>
  items.filter((item) => inShard(item, index, count));

describe('the number of shards', () => {
  it('changed from three to four under load, one replica after the other: nothing done twice, nothing left', async () => {
    const flags = [0, 1, 2].map((index) => ['--shard', `${index}/3`]);
    const running = await start({ supervisors: flags });
    const items = await running.drop(...names('steady', 0, 40));
    for (let index = 0; index < 4; index++) {
      // Each replica is in the middle of something when it is told to go.
      if (index < 3) {
        await running.said('trigger.fired', undefined, (told) => told.supervisor === index);
        expect(await running.drain(index)).toEqual({ code: 0, signal: null });
      }
      flags[index] = ['--shard', `${index}/4`];
      items.push(...(await running.drop(...names('steady', 40 + index * 5, 5))));
      await running.test.fleet.startSupervisor(index);
    }
    await running.acked(items, 120_000);
    expect(items).toHaveLength(60);
    expect(await running.effects(items)).toEqual(items.map(() => 1));
    for (const item of items) expect(running.lines('claim.acked', item)).toHaveLength(1);
    expect(await running.ask('work.stats', {})).toMatchObject({ pending: 0, claimed: 0, deadletter: 0 });
  }, 300_000);
});

describe('a shard whose replica is down', () => {
  it('waits for it, also when items are claimed; the other shard goes on', async () => {
    const running = await start({
      supervisors: [
        ['--shard', '0/2'],
        ['--shard', '1/2'],
      ],
    });
    await running.kill(1);
    const items = await running.drop(...names('quick', 0, 16));
    const [alive, dead] = [of(items, 0, 2), of(items, 1, 2)];
    expect(Math.min(alive.length, dead.length)).toBeGreaterThan(0);
    await running.acked(alive);
    expect(await running.metric(0, 'agent_shard_skipped_total')).toBeGreaterThanOrEqual(dead.length);
    expect(await running.effects(dead)).toEqual(dead.map(() => 0));
    await running.revive();
    await running.acked(dead);
    expect(await running.effects(items)).toEqual(items.map(() => 1));
  }, 180_000);

  it('is nobody’s concern without shards: another replica claims what the dead one would have', async () => {
    const running = await start({ supervisors: [[], []] });
    await running.kill(1);
    const items = await running.drop(...names('quick', 0, 8));
    await running.acked(items);
    expect(await running.effects(items)).toEqual(items.map(() => 1));
    for (const item of items) expect(running.lines('claim.acked', item)[0]?.supervisor).toBe(0);
  }, 180_000);

  it('waits for it without claims too, and its restart runs everything of its shard anew', async () => {
    const running = await start({
      supervisors: [
        ['--shard', '0/2'],
        ['--shard', '1/2'],
      ],
      common: UNCLAIMED,
    });
    const early = await running.drop(...names('quick', 0, 8));
    await running.done(early);
    await running.kill(1);
    const late = await running.drop(...names('quick', 8, 8));
    await running.done(of(late, 0, 2));
    expect(await running.effects(of(late, 1, 2))).toEqual(of(late, 1, 2).map(() => 0));
    await running.revive();
    await running.done(late);
    // Nobody remembers what was done: without a claim it is done again after every start.
    await running.said('trigger.fired', of(early, 1, 2)[0], (told) => told.line.lag_ms !== undefined);
    for (const item of of(early, 1, 2)) {
      await running.doneTimes(item, 2);
    }
    expect(await running.effects(of(early, 0, 2))).toEqual(of(early, 0, 2).map(() => 1));
  }, 180_000);
});

describe('two replicas of the same shard', () => {
  const supervisors = [
    ['--shard', '0/2'],
    ['--shard', '0/2'],
  ];

  it('do each item once when they claim', async () => {
    const running = await start({ supervisors });
    const items = await running.drop(...names('quick', 0, 16));
    const mine = of(items, 0, 2);
    expect(mine.length).toBeGreaterThan(0);
    await running.acked(mine);
    for (const item of mine) expect(running.lines('claim.acked', item)).toHaveLength(1);
    expect(await running.effects(items)).toEqual(items.map((item) => (mine.includes(item) ? 1 : 0)));
  }, 180_000);

  it('do each item twice when they do not: a shard is no lock', async () => {
    const running = await start({ supervisors, common: UNCLAIMED });
    const items = await running.drop(...names('quick', 0, 8));
    for (const item of of(items, 0, 2)) await running.doneTimes(item, 2);
    expect(await running.effects(of(items, 1, 2))).toEqual(of(items, 1, 2).map(() => 0));
  }, 180_000);
});
