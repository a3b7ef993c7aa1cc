import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  AUTH_BACKOFF_MS,
  type BreakerEvent,
  type BreakerState,
  breakerStep,
  CLOSED,
  FAILURES_TO_OPEN,
  FIRST_BACKOFF_MS,
  isDown,
  isUsable,
  MAX_BACKOFF_MS,
  TRANSITIONS,
  TRIAL_MS,
} from '../../../supervisor/intelligence/breaker-machine.ts';
import { IntelligenceHealth, type ModelCall } from '../../../supervisor/intelligence/intelligence-health.ts';
import { ManualClock } from '../../helpers/manual-clock.ts';

const event: fc.Arbitrary<BreakerEvent> = fc.oneof(
  fc.constant({ type: 'succeeded' as const }),
  fc.constant({ type: 'offered' as const }),
  fc.record({
    type: fc.constant('failed' as const),
    reason: fc.constantFrom(
      'unreachable' as const,
      'auth' as const,
      'timeout' as const,
      '5xx' as const,
      'other' as const,
    ),
  }),
);

describe('the breaker of a model endpoint', () => {
  it('keeps its promises over any history', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(event, fc.nat(20_000)), { maxLength: 200 }), (history) => {
        let state: BreakerState = CLOSED;
        let now = 0;
        for (const [next, wait] of history) {
          now += wait;
          const { state: after, effects } = breakerStep(state, next, now);
          // Told exactly when it stops and starts being closed.
          const was = state.state === 'closed';
          const is = after.state === 'closed';
          expect(effects).toEqual(was === is ? [] : [is ? 'closed' : 'opened']);
          if (next.type === 'succeeded') expect(after).toEqual(CLOSED);
          if (after.state !== 'closed') {
            expect(after.backoffMs).toBeLessThanOrEqual(MAX_BACKOFF_MS);
            expect(after.until - now).toBeLessThanOrEqual(MAX_BACKOFF_MS);
          }
          if (next.type === 'failed' && next.reason === 'other') expect(after).toEqual(state);
          expect(isDown(after, now) && isUsable(after, now)).toBe(false);
          state = after;
        }
      }),
    );
  });

  it('makes every transition of its table and no other', () => {
    const seen = new Set<string>();
    const show = (row: { state: string; event: string; next: string; effects: string }): string =>
      `${row.state} ${row.event} ${row.next} [${row.effects}]`;
    const closed: BreakerState[] = [0, 1, 2].map((failures) => ({ state: 'closed', failures }));
    const others = (['open', 'trial'] as const).flatMap((state): BreakerState[] =>
      [0, 100].map((until) => ({ state, until, backoffMs: 5_000 })),
    );
    const reasons = ['unreachable', 'auth', 'timeout', '5xx', 'other'] as const;
    const events: BreakerEvent[] = [
      { type: 'succeeded' },
      { type: 'offered' },
      ...reasons.map((reason): BreakerEvent => ({ type: 'failed', reason })),
    ];
    for (const state of [...closed, ...others]) {
      for (const given of events) {
        const { state: next, effects } = breakerStep(state, given, 50);
        seen.add(show({ state: state.state, event: given.type, next: next.state, effects: effects.join() }));
      }
    }
    expect([...seen].sort()).toEqual(TRANSITIONS.map(show).sort());
  });

  it('opens at the third failure in a row, and at the first refused credential', () => {
    let state = CLOSED;
    for (let i = 1; i < FAILURES_TO_OPEN; i++) {
      state = breakerStep(state, { type: 'failed', reason: '5xx' }, 0).state;
      expect(isUsable(state, 0)).toBe(true);
    }
    expect(breakerStep(state, { type: 'failed', reason: 'timeout' }, 0)).toEqual({
      state: { state: 'open', until: FIRST_BACKOFF_MS, backoffMs: FIRST_BACKOFF_MS },
      effects: ['opened'],
    });
    expect(breakerStep(CLOSED, { type: 'failed', reason: 'auth' }, 0).state).toMatchObject({
      state: 'open',
      until: AUTH_BACKOFF_MS,
    });
  });

  it('is tried by one run when due, waits longer after a failed trial, and closes after a good one', () => {
    const open: BreakerState = { state: 'open', until: 5_000, backoffMs: 5_000 };
    expect(breakerStep(open, { type: 'offered' }, 4_999).state).toBe(open);
    const trial = breakerStep(open, { type: 'offered' }, 5_000).state;
    expect(trial).toMatchObject({ state: 'trial', until: 5_000 + TRIAL_MS });
    expect(isUsable(trial, 5_001)).toBe(false);
    expect(breakerStep(trial, { type: 'failed', reason: 'unreachable' }, 6_000).state).toEqual({
      state: 'open',
      until: 16_000,
      backoffMs: 10_000,
    });
    expect(breakerStep(trial, { type: 'succeeded' }, 6_000)).toEqual({ state: CLOSED, effects: ['closed'] });
    // A trial nobody reports on does not block the endpoint for ever.
    expect(breakerStep(trial, { type: 'offered' }, 5_000 + TRIAL_MS).state).toMatchObject({ state: 'trial' });
  });

  it('does not count calls that were under way when it opened', () => {
    const open: BreakerState = { state: 'open', until: 5_000, backoffMs: 5_000 };
    expect(breakerStep(open, { type: 'failed', reason: 'timeout' }, 100).state).toBe(open);
  });
});

const call = (endpoint: number, over: Partial<ModelCall> = {}): ModelCall => ({
  endpoint,
  ok: true,
  durMs: 100,
  tokensIn: 10,
  tokensOut: 20,
  ...over,
});
const failure = (endpoint: number): ModelCall =>
  call(endpoint, { ok: false, reason: 'unreachable', tokensIn: 0, tokensOut: 0 });

describe('what all children know about the endpoints', () => {
  const open = (health: IntelligenceHealth, endpoint: number): void => {
    for (let i = 0; i < FAILURES_TO_OPEN; i++) health.record(failure(endpoint));
  };

  it('keeps the configured order while all work', () => {
    const health = new IntelligenceHealth(3, new ManualClock());
    expect(health.arrange(['a', 'b', 'c'])).toEqual({ items: ['a', 'b', 'c'], configured: [0, 1, 2] });
    expect(health.allDown).toBe(false);
  });

  it('puts a failing endpoint last for the next run, and tells once that it opened', () => {
    const health = new IntelligenceHealth(2, new ManualClock());
    expect(health.record(failure(0))).toBeNull();
    expect(health.record(failure(0))).toBeNull();
    expect(health.record(failure(0))).toEqual({ endpoint: 0, to: 'opened' });
    expect(health.record(failure(0))).toBeNull();
    expect(health.arrange(['a', 'b'])).toEqual({ items: ['b', 'a'], configured: [1, 0] });
    expect(health.record(call(0))).toEqual({ endpoint: 0, to: 'closed' });
    expect(health.arrange(['a', 'b']).items).toEqual(['a', 'b']);
  });

  it('gives an endpoint that is due to one run first, and to the others last until it answered', () => {
    const clock = new ManualClock();
    const health = new IntelligenceHealth(2, clock);
    open(health, 0);
    clock.advance(FIRST_BACKOFF_MS);
    expect(health.arrange(['a', 'b']).items).toEqual(['a', 'b']);
    expect(health.arrange(['a', 'b']).items).toEqual(['b', 'a']);
  });

  it('is all down only when every endpoint is, and leaves room for a trial', () => {
    const clock = new ManualClock();
    const health = new IntelligenceHealth(2, clock);
    open(health, 0);
    expect(health.allDown).toBe(false);
    clock.advance(1_000);
    open(health, 1);
    expect(health.allDown).toBe(true);
    // The one that may be tried again soonest comes first; none is left out.
    expect(health.arrange(['a', 'b']).items).toEqual(['a', 'b']);
    clock.advance(FIRST_BACKOFF_MS - 1_000);
    expect(health.allDown).toBe(false);
    expect(new IntelligenceHealth(0, clock).allDown).toBe(false);
  });

  it('are healthy once a call has succeeded, not while all are down, and unknown otherwise', () => {
    const clock = new ManualClock();
    const health = new IntelligenceHealth(2, clock);
    const call = (endpoint: number, ok: boolean): unknown =>
      health.record({
        endpoint,
        ok,
        ...(ok ? {} : { reason: 'auth' as const }),
        durMs: 1,
        tokensIn: 1,
        tokensOut: 1,
      });
    expect(health.healthy).toBe('unknown');
    call(0, false);
    expect(health.healthy).toBe('unknown');
    call(1, true);
    expect(health.healthy).toBe(true);
    call(1, false);
    expect(health.healthy).toBe(false);
    // Due for a trial: nobody knows until it has been made.
    clock.advance(AUTH_BACKOFF_MS);
    expect(health.healthy).toBe('unknown');
    call(0, true);
    expect(health.healthy).toBe(true);
    health.reset(1);
    call(7, true);
    expect(health.healthy).toBe('unknown');
  });

  it('survives a report about an endpoint that is no longer configured', () => {
    const health = new IntelligenceHealth(1, new ManualClock());
    expect(health.record(failure(7))).toBeNull();
    health.reset(2);
    expect(health.snapshot().endpoints).toHaveLength(2);
  });

  it('has rolling figures of the last minute, failures left out of the latency', () => {
    const clock = new ManualClock();
    const health = new IntelligenceHealth(1, clock);
    expect(health.snapshot()).toMatchObject({ latency_ms: null, tokens_per_sec: 0 });
    for (let i = 1; i <= 100; i++) health.record(call(0, { durMs: i, tokensIn: 6, tokensOut: 0 }));
    health.record({ ...failure(0), durMs: 0 });
    expect(health.snapshot()).toMatchObject({ latency_ms: { p50: 50, p95: 95 }, tokens_per_sec: 10 });
    clock.advance(60_000);
    expect(health.snapshot()).toMatchObject({ latency_ms: null, tokens_per_sec: 0 });
  });

  it('shows no address', () => {
    const health = new IntelligenceHealth(1, new ManualClock());
    open(health, 0);
    expect(health.snapshot().endpoints).toEqual([{ index: 0, state: 'open', retry_in_ms: FIRST_BACKOFF_MS }]);
  });
});
