import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  backoffMs,
  DEFAULT_GOVERNOR,
  GOVERNOR_START,
  GOVERNOR_TRANSITIONS,
  type Governor,
  type GovernorEvent,
  governorStep,
} from '../../../supervisor/children/restart-governor.ts';

const C = DEFAULT_GOVERNOR;
const NOW = 1_000_000;

function stateNamed(name: Governor['name'], failed: number): Governor {
  const failures = Array.from({ length: failed }, () => ({ at: NOW, weight: 1 }));
  switch (name) {
    case 'closed':
      return { name, failures, inARow: failed };
    case 'backing_off':
      return { name, failures, inARow: failed, until: NOW + 500 };
    case 'open':
      return { name, inARow: 5, until: NOW + C.coolMs };
    case 'probing':
      return { name, inARow: 5 };
  }
}

describe('the restart governor', () => {
  it.each(GOVERNOR_TRANSITIONS.map((row) => [`${row.state} × ${row.event}`, row] as const))(
    'governor row %s',
    (_name, row) => {
      const threshold = row.event === 'failed at threshold';
      const state = stateNamed(row.state, threshold ? C.threshold - 1 : 1);
      const now = row.event === 'ask when due' ? NOW + C.coolMs : NOW;
      const [word = ''] = row.event.split(' ');
      const events: Record<string, GovernorEvent> = {
        ask: { type: 'ask', now },
        succeeded: { type: 'succeeded', now },
        failed: { type: 'failed', now, beforeReady: false, random: 0.5 },
      };
      const event = events[word];
      if (event === undefined) throw new Error(`no event for ${row.event}`);
      const stepped = governorStep(state, event);
      expect({ next: stepped.state.name, effects: stepped.effects }).toEqual({
        next: row.next,
        effects: row.effects,
      });
    },
  );

  it('covers every state and event', () => {
    const covered = new Set(GOVERNOR_TRANSITIONS.map((row) => `${row.state} ${row.event.split(' ')[0]}`));
    const all = ['closed', 'backing_off', 'open', 'probing'].flatMap((state) =>
      ['ask', 'succeeded', 'failed'].map((event) => `${state} ${event}`),
    );
    expect([...covered].toSorted()).toEqual(all.toSorted());
  });

  it('backs off from 500 ms, doubling to 30 s, with at most half of it jitter', () => {
    expect([1, 2, 3, 7, 8, 100].map((n) => backoffMs(n, 1, C))).toEqual([
      500, 1_000, 2_000, 30_000, 30_000, 30_000,
    ]);
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 1_000 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (n, random) => {
          const full = backoffMs(n, 1, C);
          const delay = backoffMs(n, random, C);
          expect(delay).toBeGreaterThanOrEqual(full / 2);
          expect(delay).toBeLessThanOrEqual(full);
        },
      ),
    );
  });

  it('two crashes before ready open the breaker, and four ordinary ones do not', () => {
    const crash = (beforeReady: boolean, at: number): GovernorEvent => ({
      type: 'failed',
      now: at,
      beforeReady,
      random: 0,
    });
    let state = governorStep(GOVERNOR_START, crash(true, NOW)).state;
    expect(state.name).toBe('backing_off');
    expect(governorStep(state, crash(true, NOW)).state.name).toBe('open');
    state = GOVERNOR_START;
    for (let i = 0; i < 4; i += 1) state = governorStep(state, crash(false, NOW)).state;
    expect(state.name).toBe('backing_off');
  });

  it('in any window of 60 s at most a threshold of restarts is allowed, whatever crashes', () => {
    const gaps = fc.array(fc.tuple(fc.integer({ min: 0, max: 20_000 }), fc.boolean()), {
      minLength: 1,
      maxLength: 80,
    });
    fc.assert(
      fc.property(gaps, fc.double({ min: 0, max: 1, noNaN: true }), (steps, random) => {
        let state: Governor = GOVERNOR_START;
        let now = 0;
        const allowed: number[] = [];
        for (const [gap, beforeReady] of steps) {
          now += gap;
          const asked = governorStep(state, { type: 'ask', now });
          state = asked.state;
          if (!asked.effects.includes('allow')) continue;
          allowed.push(now);
          // Everything that is started crashes at once.
          state = governorStep(state, { type: 'failed', now, beforeReady, random }).state;
        }
        for (const at of allowed) {
          const inWindow = allowed.filter((other) => other >= at && other - at < C.windowMs);
          expect(inWindow.length).toBeLessThanOrEqual(C.threshold);
        }
      }),
    );
  });

  it('an open breaker lets one probe through, and closes when it holds', () => {
    let state: Governor = { name: 'open', inARow: 5, until: NOW + C.coolMs };
    const ask = (now: number): readonly string[] => {
      const stepped = governorStep(state, { type: 'ask', now });
      state = stepped.state;
      return stepped.effects;
    };
    expect(ask(NOW + C.coolMs - 1)).toEqual(['wait']);
    expect(ask(NOW + C.coolMs)).toEqual(['allow']);
    expect(ask(NOW + C.coolMs)).toEqual(['wait']);
    state = governorStep(state, { type: 'succeeded', now: NOW + C.coolMs }).state;
    expect(ask(NOW + C.coolMs)).toEqual(['allow']);
  });
});
