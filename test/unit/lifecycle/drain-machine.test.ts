import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  DRAIN_STEPS,
  type DrainEffect,
  type DrainEvent,
  type DrainState,
  releaseBudget,
  stepDrain,
  TRANSITIONS,
} from '../../../supervisor/lifecycle/drain-machine.ts';

const TIMEOUT = 25_000;
const TERM: DrainEvent = { type: 'signal', signal: 'SIGTERM' };

describe('drain machine', () => {
  it('goes through every step in order and exits', () => {
    let state: DrainState = { phase: 'running' };
    const entered: string[] = [];
    const take = (event: DrainEvent, now: number): void => {
      const decision = stepDrain(state, event, now, TIMEOUT);
      state = decision.state;
      for (const effect of decision.effects)
        entered.push(effect.type === 'enter' ? effect.step : effect.type);
    };
    take(TERM, 0);
    for (const step of DRAIN_STEPS) take({ type: 'step_done', step }, 1_000);
    expect(entered).toEqual(['started', ...DRAIN_STEPS, 'exit']);
    expect(state).toEqual({ phase: 'exiting', forced: false });
  });

  it('keeps the shares of all steps within the budget, however long each takes', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 3_600_000 }),
        fc.infiniteStream(fc.double({ min: 0, max: 1, noNaN: true })),
        (timeout, shares) => {
          let decision = stepDrain({ phase: 'running' }, TERM, 0, timeout);
          let now = 0;
          for (;;) {
            const enter: DrainEffect | undefined = decision.effects.find((effect) => effect.type === 'enter');
            if (enter?.type !== 'enter') break;
            const used = shares.next().value as number;
            now += enter.budgetMs * (enter.step === 'disarm' ? 0 : used);
            decision = stepDrain(decision.state, { type: 'step_done', step: enter.step }, now, timeout);
          }
          expect(now).toBeLessThanOrEqual(timeout + 1e-6);
          expect(decision.state.phase).toBe('exiting');
        },
      ),
    );
  });

  it('takes two signals within 100 ms for one, and a later second one as force', () => {
    const first = stepDrain({ phase: 'running' }, TERM, 0, TIMEOUT);
    expect(stepDrain(first.state, TERM, 10, TIMEOUT)).toEqual({ state: first.state, effects: [] });
    const second = stepDrain(first.state, TERM, 500, TIMEOUT);
    expect(second).toEqual({ state: { phase: 'exiting', forced: true }, effects: [{ type: 'force' }] });
  });

  it('forces when a signal follows a drain that an operator asked for', () => {
    const first = stepDrain(
      { phase: 'running' },
      { type: 'request', cause: 'operator', budgetMs: 9 },
      0,
      TIMEOUT,
    );
    expect(first.state).toMatchObject({ phase: 'draining', deadline: 9 });
    expect(stepDrain(first.state, TERM, 500, TIMEOUT).effects).toEqual([{ type: 'force' }]);
  });

  it('never turns back (invariant 4)', () => {
    const rank = { running: 0, draining: 1, exiting: 2 };
    const event = fc.oneof(
      fc.constant<DrainEvent>(TERM),
      fc.constant<DrainEvent>({ type: 'request', cause: 'done' }),
      fc.constantFrom(...DRAIN_STEPS).map((step): DrainEvent => ({ type: 'step_done', step })),
    );
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(500), event)), (events) => {
        let state: DrainState = { phase: 'running' };
        let now = 0;
        let exits = 0;
        for (const [wait, one] of events) {
          now += wait;
          const decision = stepDrain(state, one, now, TIMEOUT);
          expect(rank[decision.state.phase]).toBeGreaterThanOrEqual(rank[state.phase]);
          if (state.phase === 'draining' && decision.state.phase === 'draining') {
            expect(DRAIN_STEPS.indexOf(decision.state.step)).toBeGreaterThanOrEqual(
              DRAIN_STEPS.indexOf(state.step),
            );
          }
          state = decision.state;
          exits += decision.effects.filter(
            (effect) => effect.type === 'exit' || effect.type === 'force',
          ).length;
        }
        expect(exits).toBe(state.phase === 'exiting' ? 1 : 0);
      }),
    );
  });

  it('gives releases two seconds or a quarter, whichever is less', () => {
    expect(releaseBudget(25_000)).toBe(2_000);
    expect(releaseBudget(4_000)).toBe(1_000);
  });

  it('prints rows only for phases it has', () => {
    for (const row of TRANSITIONS) expect(['running', 'draining', 'exiting']).toContain(row.next);
  });
});
