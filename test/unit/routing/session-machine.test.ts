import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  CLOSED,
  type SessionEffect,
  type SessionEvent,
  type SessionState,
  stepSession,
  TRANSITIONS,
} from '../../../supervisor/routing/session-machine.ts';

const KEYS = ['a'];
const updates = (claim: boolean): SessionEvent => ({ type: 'updates', keys: KEYS, newRunId: 'R', claim });
const EVENTS: readonly SessionEvent[] = [
  updates(false),
  updates(true),
  { type: 'claimed', runId: 'R' },
  { type: 'unclaimed', runId: 'R', elsewhere: true, at: 50 },
  { type: 'unclaimed', runId: 'R', elsewhere: false, at: 50 },
  { type: 'turned', runId: 'R' },
  { type: 'ended', runId: 'R', verdict: { kind: 'retry', at: 20 } },
  { type: 'ended', runId: 'R', verdict: { kind: 'open', until: 90 } },
  { type: 'renew' },
  { type: 'close' },
];
const STATES: readonly SessionState[] = [
  CLOSED,
  { state: 'closed', notBefore: 1_000 },
  { state: 'claiming', runId: 'R', keys: KEYS },
  { state: 'idle', runId: 'R', wakes: 1 },
  { state: 'turning', runId: 'R', wakes: 1, keys: KEYS },
  { state: 'broken', until: 5 },
  { state: 'broken', until: 1_000 },
];

describe('session machine', () => {
  it('does what each row of its table says, and the table has a row for every change', () => {
    const seen = new Set<string>();
    for (const state of STATES) {
      for (const event of EVENTS) {
        const step = stepSession(state, event, 10);
        if (step.state === state && step.effects.length === 0) continue;
        seen.add(
          `${state.state} ${event.type} ${step.state.state} ${step.effects.map(({ type }) => type).join(', ')}`,
        );
      }
    }
    expect([...seen].sort()).toEqual(
      [...new Set(TRANSITIONS.map((row) => `${row.state} ${row.event} ${row.next} ${row.effects}`))].sort(),
    );
  });

  it('loses no update: each is woken for and settled, put back, looked at again, or refused, once', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...EVENTS), { maxLength: 40 }), (events) => {
        let state: SessionState = CLOSED;
        let given = 0;
        let out = 0;
        const keysOf = (effect: SessionEffect): number =>
          effect.type === 'settle' ||
          effect.type === 'put_back' ||
          effect.type === 'revisit' ||
          effect.type === 'refuse'
            ? effect.keys.length
            : 0;
        for (const event of events) {
          if (event.type === 'updates') given += event.keys.length;
          const step = stepSession(state, event, 10);
          state = step.state;
          for (const effect of step.effects) out += keysOf(effect);
        }
        expect(out + ('keys' in state ? state.keys.length : 0)).toBe(given);
      }),
    );
  });

  it('opens a claimed session only once it is claimed', () => {
    const asked = stepSession(CLOSED, updates(true), 0);
    expect(asked.effects).toEqual([{ type: 'claim', runId: 'R' }]);
    const granted = stepSession(asked.state, { type: 'claimed', runId: 'R' }, 1);
    expect(granted.effects).toEqual([
      { type: 'open', runId: 'R' },
      { type: 'wake', runId: 'R', keys: KEYS },
    ]);
  });
});
