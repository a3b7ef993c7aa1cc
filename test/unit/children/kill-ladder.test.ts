import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  graceOf,
  LADDER_START,
  LADDER_TRANSITIONS,
  type LadderEffect,
  type LadderEvent,
  type LadderState,
  ladderStep,
  rungOf,
} from '../../../supervisor/children/kill-ladder.ts';

const STATES = ['idle', 'cancelling', 'terminating', 'killing', 'gone', 'abandoned'] as const;
const EVENTS = ['ask', 'terminate', 'kill', 'timeout', 'leader_exited', 'group_empty'] as const;
const TIMINGS = { cancelGraceMs: 5_000, termGraceMs: 2_000, killWaitMs: 5_000 };

function stateNamed(name: LadderState['name']): LadderState {
  return name === 'gone' ? { name, rung: 'term' } : { name };
}

describe('the kill ladder', () => {
  it('has exactly one row for every state and event, and does what it says', () => {
    const keys = LADDER_TRANSITIONS.map((row) => `${row.state} ${row.event}`);
    const all = STATES.flatMap((state) => EVENTS.map((event) => `${state} ${event}`));
    expect(keys.toSorted()).toEqual(all.toSorted());
    for (const row of LADDER_TRANSITIONS) {
      const { state, effects } = ladderStep(stateNamed(row.state), row.event);
      expect({ next: state.name, effects }).toEqual({ next: row.next, effects: row.effects });
    }
  });

  it('never signals a group that is gone, and never goes down a rung', () => {
    const height = { none: 0, cancel: 1, term: 2, kill: 3 };
    fc.assert(
      fc.property(fc.array(fc.constantFrom<LadderEvent>(...EVENTS), { maxLength: 40 }), (events) => {
        let state: LadderState = LADDER_START;
        for (const event of events) {
          const before = state;
          const { state: after, effects } = ladderStep(before, event);
          if (before.name === 'gone') {
            expect(after).toEqual(before);
            expect(effects).toEqual([]);
          }
          expect(height[rungOf(after)]).toBeGreaterThanOrEqual(height[rungOf(before)]);
          state = after;
        }
      }),
    );
  });

  it('ends within the sum of its graces, however the group behaves, once it has begun', () => {
    // The model: a group that leaves at a given age, deaf to some rungs; a clock that only timers move.
    const group = fc.record({
      obeys: fc.constantFrom<LadderEffect | 'nothing'>(
        'send_cancel',
        'signal_term',
        'signal_kill',
        'nothing',
      ),
      leaderFirst: fc.boolean(),
      start: fc.constantFrom<LadderEvent>('ask', 'terminate', 'kill'),
      hurries: fc.array(fc.constantFrom<LadderEvent>('ask', 'terminate'), { maxLength: 3 }),
    });
    fc.assert(
      fc.property(group, ({ obeys, leaderFirst, start, hurries }) => {
        let state: LadderState = LADDER_START;
        let elapsed = 0;
        let done = 0;
        const signals: LadderEffect[] = [];
        const queue: LadderEvent[] = [start, ...hurries];
        const order: LadderEffect[] = ['send_cancel', 'signal_term', 'signal_kill'];
        for (let steps = 0; steps < 50; steps += 1) {
          let event = queue.shift();
          if (event === undefined) {
            const grace = graceOf(state, TIMINGS);
            if (grace === null) break;
            elapsed += grace;
            event = 'timeout';
          }
          const stepped = ladderStep(state, event);
          state = stepped.state;
          for (const effect of stepped.effects) {
            if (effect === 'done') done += 1;
            if (!order.includes(effect)) continue;
            signals.push(effect);
            const obeyed = obeys !== 'nothing' && order.indexOf(effect) >= order.indexOf(obeys);
            if (obeyed && !queue.includes('group_empty')) {
              if (leaderFirst) queue.push('leader_exited');
              queue.push('group_empty');
            }
          }
        }
        expect(elapsed).toBeLessThanOrEqual(5_000 + 2_000 + 5_000);
        expect(done).toBe(1);
        expect(state.name).toBe(obeys === 'nothing' ? 'abandoned' : 'gone');
        // Rungs come in order.
        const heights = signals.map((signal) => order.indexOf(signal));
        expect(heights).toEqual(heights.toSorted((a, b) => a - b));
      }),
    );
  });
});
