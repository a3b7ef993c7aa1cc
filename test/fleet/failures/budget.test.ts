import { afterEach, describe, expect, it } from 'vitest';
import { eventually } from '../../helpers/eventually.ts';
import { FailingFleet } from './failing-fleet.ts';

let fleet: FailingFleet | null = null;

afterEach(async () => {
  await fleet?.close();
  fleet = null;
});

const ITEMS = 24;
/** Of one run, as the playbook says. */
const TOKENS = 600;

describe('a fleet whose every replica has spent its token budget', () => {
  it('starts nothing more, holds no lease, shows its backlog, and a replica with budget finishes the work', async () => {
    const flags: string[][] = [0, 1].map(() => ['--budget-tokens-lifetime', String(2 * TOKENS)]);
    const running = await FailingFleet.start({ supervisors: flags });
    fleet = running;
    const items = await running.drop(...Array.from({ length: ITEMS }, (_, index) => `costly-${index}`));
    const spent = async (index: number): Promise<boolean> =>
      (await running.metric(index, 'agent_budget_tokens_remaining')) <= 0 &&
      (await running.metric(index, 'agent_inflight_reactions')) === 0;
    await eventually('both budgets to be spent', async () => (await spent(0)) && (await spent(1)), 120_000);
    // What was being claimed when the budget ended is run or given back.
    await eventually('no lease to be held', async () => (await running.ask('work.stats', {})).claimed === 0);
    // The budget and what was already running when it ended; everything else waits.
    const acked = running.lines('claim.acked').length;
    expect(acked).toBeGreaterThanOrEqual(4);
    expect(acked).toBeLessThan(ITEMS / 2);
    expect(await running.ask('work.stats', {})).toMatchObject({ claimed: 0, deadletter: 0 });
    for (const index of [0, 1]) {
      expect(await running.metric(index, 'agent_pending_events')).toBeGreaterThan(0);
      expect(await running.metric(index, 'agent_reaction_lag_ms')).toBeGreaterThan(0);
      expect(await running.metric(index, 'agent_ready')).toBe(1);
    }
    // No meltdown: while the backlog grows older, nobody claims or starts anything.
    const before = running.lines('claim.granted').length;
    const lag = await running.metric(0, 'agent_reaction_lag_ms');
    await eventually(
      'the backlog to have waited for another two seconds',
      async () => (await running.metric(0, 'agent_reaction_lag_ms')) > lag + 2_000,
    );
    expect(running.lines('claim.granted')).toHaveLength(before);
    expect(running.lines('subagent.spawn').length).toBeLessThan(ITEMS);
    flags.push([]);
    await running.test.fleet.startSupervisor(2);
    await running.acked(items, 120_000);
    expect(await running.effects(items)).toEqual(items.map(() => 1));
  }, 240_000);
});
