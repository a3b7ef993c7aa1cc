import { afterEach, describe, expect, it } from 'vitest';
import { eventually } from '../../helpers/eventually.ts';
import { FailingFleet, SHORT_TTL_MS } from './failing-fleet.ts';

let fleet: FailingFleet | null = null;

afterEach(async () => {
  await fleet?.close();
  fleet = null;
});

describe('a lease that runs out under a slow run', () => {
  it('because its holder stood still: another does the item, the holder stops and its result is refused (H08)', async () => {
    fleet = await FailingFleet.start({ supervisors: [[], []], ttlMs: SHORT_TTL_MS });
    const [item = ''] = await fleet.drop('before-1');
    const { supervisor } = await fleet.said('trigger.fired', item);
    const holder = fleet.supervisor(supervisor);
    holder.kill('SIGSTOP');
    const ack = await fleet.said('claim.acked', item);
    expect(ack.supervisor).not.toBe(supervisor);
    const done = await fleet.record(item);
    holder.kill('SIGCONT');
    await fleet.said('claim.expired', item, (told) => told.supervisor === supervisor);
    await fleet.said('subagent.exit', undefined, (told) => told.supervisor === supervisor);
    expect(fleet.lines('claim.acked', item)).toHaveLength(1);
    expect(await fleet.effects([item])).toEqual([1]);
    expect(await fleet.record(item)).toMatchObject({ state: 'done', attempt: 2, result: done.result });
    // It is not damaged by having slept.
    const items = await fleet.drop('quick-1', 'quick-2', 'quick-3', 'quick-4');
    await fleet.acked(items);
    expect(await fleet.drain(supervisor)).toEqual({ code: 0, signal: null });
  }, 180_000);

  it('because the coordination server stood still: the run stops before the lease is over, and is begun anew afterwards', async () => {
    fleet = await FailingFleet.start({ supervisors: [[], []], ttlMs: SHORT_TTL_MS });
    const { coordinator } = fleet.test.fleet;
    const [item = ''] = await fleet.drop('hang-1');
    const { supervisor, line: granted } = await fleet.said('claim.granted', item);
    await fleet.said('trigger.fired', item);
    coordinator.kill('SIGSTOP');
    const { line: expired } = await fleet.said('claim.expired', item);
    const { line: exit } = await fleet.said(
      'subagent.exit',
      undefined,
      (told) => told.supervisor === supervisor,
    );
    const renewed = fleet.lines('claim.renewed', item).at(-1)?.line ?? granted;
    // Stopped within the margin that is kept back for it, so that nobody else can be running yet.
    const lifeMs = Date.parse(String(exit.ts)) - Date.parse(String(renewed.ts));
    expect(lifeMs).toBeLessThanOrEqual(SHORT_TTL_MS);
    expect(Date.parse(String(expired.ts))).toBeLessThanOrEqual(Date.parse(String(exit.ts)));
    coordinator.kill('SIGCONT');
    const again = await fleet.said(
      'claim.granted',
      item,
      (told) => Date.parse(String(told.line.ts)) > Date.parse(String(expired.ts)),
    );
    expect(again.line.lease_id).not.toBe(granted.lease_id);
    await eventually('the ledger to count the second attempt', async () => {
      const { attempt } = (await fleet?.record(item)) ?? {};
      return attempt === 2;
    });
  }, 180_000);
});
