import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { OFFERED, stepLease } from '../../../supervisor/gates/lease-machine.ts';
import type {
  LeaseEffect,
  LeaseEvent,
  LeaseRules,
  LeaseState,
} from '../../../supervisor/gates/lease-model.ts';
import { TRANSITIONS } from '../../../supervisor/gates/lease-table.ts';

const rules: LeaseRules = { ttlMs: 30_000, renewFraction: 0.33, claimAttempts: 3, retryMs: () => 200 };
const granted: LeaseEvent = { type: 'granted', leaseId: 'L', expiresInMs: 30_000, sentAt: 0 };

function run(events: readonly (readonly [number, LeaseEvent])[], from: LeaseState = OFFERED) {
  let state = from;
  let effects: readonly LeaseEffect[] = [];
  const all: LeaseEffect[] = [];
  for (const [now, event] of events) {
    ({ state, effects } = stepLease(state, event, now, rules));
    all.push(...effects);
  }
  return { state, effects, all };
}

describe('lease machine', () => {
  it('renews at the fraction of the ttl and plans its own stop before the expiry', () => {
    const { effects } = run([[1_000, granted]]);
    expect(effects).toEqual([
      { type: 'start' },
      { type: 'timer', name: 'renew', at: 1_000 + 29_000 * 0.33 },
      { type: 'timer', name: 'expiry', at: 30_000 - 5_000 },
    ]);
  });

  it('survives two failed renewals and then one that succeeds', () => {
    const { state, all } = run([
      [0, granted],
      [10_000, { type: 'renew_due' }],
      [10_100, { type: 'renew_failed', error: 'reset' }],
      [12_600, { type: 'renew_due' }],
      [12_700, { type: 'renew_failed', error: 'reset' }],
      [15_200, { type: 'renew_due' }],
      [15_300, { type: 'renewed', expiresInMs: 30_000, sentAt: 15_200 }],
    ]);
    expect(state).toMatchObject({ state: 'claimed', expiresAt: 45_200 });
    expect(all.some((effect) => effect.type === 'stop')).toBe(false);
  });

  it('stops at once when the ledger says not yours', () => {
    const { all, state } = run([
      [0, granted],
      [10_000, { type: 'renew_due' }],
      [10_001, { type: 'renew_refused' }],
    ]);
    expect(all).toContainEqual({ type: 'stop', cause: 'lease_lost', withinMs: 0 });
    expect(state).toMatchObject({ state: 'ended', end: { kind: 'expired' } });
  });

  it('stops before its own estimate of the expiry when a renewal hangs', () => {
    const { all } = run([
      [0, granted],
      [10_000, { type: 'renew_due' }],
      [25_000, { type: 'expiry_due' }],
    ]);
    expect(all).toContainEqual({ type: 'stop', cause: 'lease_expired', withinMs: 5_000 });
  });

  it('ignores a renewal that was in flight when the ack won', () => {
    const { state, all } = run([
      [0, granted],
      [10_000, { type: 'renew_due' }],
      [10_001, { type: 'completed', result: 'r' }],
      [10_002, { type: 'renew_refused' }],
      [10_003, { type: 'acked' }],
      [10_004, { type: 'renewed', expiresInMs: 30_000, sentAt: 10_000 }],
    ]);
    expect(state).toEqual({ state: 'ended', end: { kind: 'acked' } });
    expect(all.some((effect) => effect.type === 'stop')).toBe(false);
  });

  it('gives back a lease whose grant arrives after a drain began', () => {
    const { effects } = run([
      [0, { type: 'abandon' }],
      [50, granted],
    ]);
    expect(effects).toEqual([{ type: 'release', leaseId: 'L', reason: 'drain' }]);
  });

  it.each([24_999, 25_000, 31_000])(
    'starts nothing on a grant that arrives %i ms after it was asked for, unless there is time',
    (now) => {
      const { effects } = run([[now, granted]]);
      if (now < 25_000) expect(effects[0]).toEqual({ type: 'start' });
      else
        expect(effects).toEqual([
          { type: 'release', leaseId: 'L', reason: 'not_started: the grant came too late' },
        ]);
    },
  );

  it('asks three times before it says that it could not ask', () => {
    const failed: LeaseEvent = { type: 'claim_failed', error: 'isError' };
    const { state, all } = run([
      [0, failed],
      [200, { type: 'retry_due' }],
      [201, failed],
      [401, { type: 'retry_due' }],
      [402, failed],
    ]);
    expect(all.filter((effect) => effect.type === 'claim')).toHaveLength(2);
    expect(state).toEqual({ state: 'ended', end: { kind: 'unasked', error: 'isError' } });
  });

  it('retries an ack while the lease may live, and then says it expired', () => {
    const fail: LeaseEvent = { type: 'ack_failed', error: 'down' };
    const { effects } = run([
      [0, granted],
      [1_000, { type: 'completed', result: 'r' }],
      [2_000, fail],
    ]);
    expect(effects).toEqual([{ type: 'timer', name: 'retry', at: 2_200 }]);
    const late = run([
      [0, granted],
      [1_000, { type: 'completed', result: 'r' }],
      [29_900, fail],
    ]);
    expect(late.state).toEqual({ state: 'ended', end: { kind: 'expired', why: 'down' } });
  });

  const anyEvent: fc.Arbitrary<LeaseEvent> = fc.oneof(
    fc.constant<LeaseEvent>(granted),
    fc.constantFrom<LeaseEvent>(
      { type: 'denied', heldBy: 'x' },
      { type: 'claim_failed', error: 'e' },
      { type: 'retry_due' },
      { type: 'abandon' },
      { type: 'renew_due' },
      { type: 'renewed', expiresInMs: 30_000, sentAt: 0 },
      { type: 'renew_refused' },
      { type: 'renew_failed', error: 'e' },
      { type: 'expiry_due' },
      { type: 'completed', result: 'r' },
      { type: 'not_completed', reason: 'r' },
      { type: 'acked' },
      { type: 'ack_refused' },
      { type: 'ack_failed', error: 'e' },
      { type: 'released' },
      { type: 'release_refused' },
      { type: 'release_failed', error: 'e' },
    ),
  );

  it('ends once, starts at most once, and only after a grant (invariants 1 and 3)', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(2_000), anyEvent), { maxLength: 40 }), (steps) => {
        let state: LeaseState = OFFERED;
        let now = 0;
        let starts = 0;
        let ends = 0;
        let grants = 0;
        for (const [wait, event] of steps) {
          now += wait;
          if (state.state === 'offered' && event.type === 'granted') grants++;
          const step = stepLease(state, event, now, rules);
          state = step.state;
          for (const effect of step.effects) {
            if (effect.type === 'start') starts++;
            if (effect.type === 'ended') ends++;
          }
        }
        expect(starts).toBeLessThanOrEqual(1);
        expect(starts).toBeLessThanOrEqual(grants);
        expect(ends).toBe(state.state === 'ended' ? 1 : 0);
      }),
    );
  });

  it('does what each row of its table says, and the table has a row for every change', () => {
    const held = { leaseId: 'L', expiresAt: 30_000 };
    const states: Record<string, LeaseState[]> = {
      offered: [
        OFFERED,
        { state: 'offered', attempt: 3, abandoned: false },
        { state: 'offered', attempt: 1, abandoned: true },
      ],
      claimed: [{ state: 'claimed', ...held }],
      acking: [{ state: 'acking', ...held, attempt: 1, result: 'r' }],
      releasing: [{ state: 'releasing', ...held, attempt: 1, reason: 'r' }],
      ended: [{ state: 'ended', end: { kind: 'acked' } }],
    };
    const events = fc.sample(anyEvent, 2_000);
    const seen = new Set<string>();
    for (const [name, variants] of Object.entries(states)) {
      for (const state of variants) {
        for (const event of events) {
          for (const now of [1_000, 29_900]) {
            const step = stepLease(state, event, now, rules);
            if (step.state === state && step.effects.length === 0) continue;
            seen.add(`${name} ${event.type} ${step.state.state}`);
          }
        }
      }
    }
    expect([...seen].sort()).toEqual(
      [...new Set(TRANSITIONS.map((row) => `${row.state} ${row.event} ${row.next}`))].sort(),
    );
  });
});
