import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../../helpers/eventually.ts';
import { supervisedBy } from '../../helpers/leftovers.ts';
import { FailingFleet, SHORT_TTL_MS } from './failing-fleet.ts';

let fleet: FailingFleet;

beforeAll(async () => {
  fleet = await FailingFleet.start({ supervisors: [[], [], []], ttlMs: SHORT_TTL_MS });
}, 120_000);

afterAll(() => fleet.close());

const names = (kind: string, count: number): string[] =>
  Array.from({ length: count }, (_, index) => `${kind}-${index}`);

describe('three replicas that claim', () => {
  it('at the same moment: each item is granted to one, done once and acked once', async () => {
    const items = await fleet.drop(...names('quick', 30));
    await fleet.acked(items, 120_000);
    for (const item of items) {
      expect(fleet.settledGrants(item)).toBe(1);
      expect(fleet.lines('claim.acked', item)).toHaveLength(1);
    }
    expect(await fleet.effects(items)).toEqual(items.map(() => 1));
    // They did contend: every replica hears of every item, so two of three lose.
    await eventually('the others to have lost', async () => {
      const lost = await Promise.all([0, 1, 2].map((one) => fleet.metric(one, 'agent_claims_lost_total')));
      return lost.reduce((sum, one) => sum + one, 0) >= items.length;
    });
  }, 180_000);

  it('and one dies after the side effect and before the ack: another acks, the side effect stays one', async () => {
    const [item = ''] = await fleet.drop('after-1');
    const { supervisor } = await fleet.said('claim.granted', item);
    await fleet.done([item]);
    await fleet.kill(supervisor);
    const ack = await fleet.said('claim.acked', item);
    expect(ack.supervisor).not.toBe(supervisor);
    expect(await fleet.effects([item])).toEqual([1]);
    const { state, attempt } = await fleet.record(item);
    expect(state).toBe('done');
    expect(attempt).toBeGreaterThan(1);
    await fleet.revive();
  }, 180_000);

  it('and one dies after the claim and before the side effect: another does it', async () => {
    const [item = ''] = await fleet.drop('before-1');
    const { supervisor } = await fleet.said('trigger.fired', item);
    const { pid } = fleet.supervisor(supervisor);
    await fleet.kill(supervisor);
    expect(await fleet.effects([item])).toEqual([0]);
    const ack = await fleet.said('claim.acked', item);
    expect(ack.supervisor).not.toBe(supervisor);
    expect(await fleet.effects([item])).toEqual([1]);
    expect(await fleet.record(item)).toMatchObject({ state: 'done' });
    await eventually('the children of the dead to be gone', () => supervisedBy(pid).length === 0);
    await fleet.revive();
  }, 180_000);
});
