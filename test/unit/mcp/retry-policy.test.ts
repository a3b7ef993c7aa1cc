import { describe, expect, it } from 'vitest';
import { retryForEver, retryGoverned } from '../../../supervisor/mcp/retry-policy.ts';
import { ManualClock } from '../../helpers/manual-clock.ts';

describe('whether a server is tried again', () => {
  it('is never in doubt over HTTP', () => {
    const policy = retryForEver(() => 0);
    for (const failures of [1, 2, 10, 1_000_000]) {
      const decision = policy.decide({ failures, livedMs: null, reason: 'refused' });
      expect(decision).toMatchObject({ kind: 'retry' });
    }
    expect(policy.decide({ failures: 1, livedMs: 5, reason: '' })).toEqual({ kind: 'retry', delayMs: 125 });
  });

  it('ends for a required stdio server that crashes before it is ready twice', () => {
    const policy = retryGoverned(new ManualClock(), () => 0, true);
    const crash = { failures: 1, livedMs: null, reason: 'no database' };
    expect(policy.decide(crash)).toEqual({ kind: 'retry', delayMs: 250 });
    expect(policy.decide({ ...crash, failures: 2 })).toEqual({
      kind: 'give_up',
      reason: 'it does not stay up: no database',
    });
  });

  it('ends for a required stdio server that was up five times within a minute', () => {
    const clock = new ManualClock();
    const policy = retryGoverned(clock, () => 0.5, true);
    const kinds: string[] = [];
    for (let n = 1; n <= 5; n++) {
      clock.advance(5_000);
      kinds.push(policy.decide({ failures: n, livedMs: 4_000, reason: 'gone' }).kind);
    }
    expect(kinds).toEqual(['retry', 'retry', 'retry', 'retry', 'give_up']);
  });

  it('goes on for one that holds in between', () => {
    const clock = new ManualClock();
    const policy = retryGoverned(clock, () => 0.5, true);
    for (let n = 0; n < 50; n++) {
      clock.advance(30_000);
      const decision = policy.decide({ failures: 1, livedMs: 29_000, reason: 'gone' });
      expect(decision).toEqual({ kind: 'retry', delayMs: 375 });
    }
  });

  it('waits out the breaker for an optional one, and never spins', () => {
    const clock = new ManualClock();
    const policy = retryGoverned(clock, () => 0, false);
    const delays: number[] = [];
    for (let n = 1; n <= 6; n++) {
      const decision = policy.decide({ failures: n, livedMs: null, reason: 'no database' });
      if (decision.kind !== 'retry') throw new Error('it was given up');
      delays.push(decision.delayMs);
      clock.advance(decision.delayMs + 100);
    }
    expect(delays[0]).toBe(250);
    expect(delays.slice(1).every((delay) => delay >= 60_000)).toBe(true);
  });
});
