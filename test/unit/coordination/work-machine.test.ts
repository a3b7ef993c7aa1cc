import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { backoffMs, newWork, step } from '../../../supervisor/coordination/work-machine.ts';
import type { Step, Work, WorkEvent, WorkState } from '../../../supervisor/coordination/work-model.ts';

const holders = fc.constantFrom('a', 'b', 'c');
const times = fc.integer({ min: 0, max: 100_000 });
const leases = fc.record({
  leaseId: fc.constantFrom('l1', 'l2', 'l3'),
  holder: holders,
  fencing: fc.nat(99),
});

const states: fc.Arbitrary<WorkState> = fc.oneof(
  fc.record({
    at: fc.constant('submitted' as const),
    waitingFor: fc.integer({ min: 1, max: 3 }),
    notBefore: times,
  }),
  fc.record({ at: fc.constant('ready' as const), notBefore: times }),
  fc
    .record({ lease: leases, expiresAt: times, renewed: fc.boolean() })
    .map(({ lease, expiresAt, renewed }) => ({ at: 'leased' as const, ...lease, expiresAt, renewed })),
  fc
    .record({ lease: leases, since: times, result: fc.option(fc.constant('1')) })
    .map(({ lease, since, result }) => ({ at: 'done' as const, ...lease, since, result })),
  fc.record({ at: fc.constant('dead_letter' as const), since: times, waitingFor: fc.nat(2) }),
  fc.record({ at: fc.constant('cancelled' as const), since: times }),
);
const works: fc.Arbitrary<Work> = states.chain((state) =>
  fc.record({ maxAttempts: fc.integer({ min: 1, max: 4 }), used: fc.nat(3) }).map(({ maxAttempts, used }) => {
    const least = state.at === 'leased' || state.at === 'done' ? 1 : 0;
    // What waits has an attempt left: the last failure makes a dead letter.
    const most = state.at === 'ready' || state.at === 'submitted' ? maxAttempts - 1 : maxAttempts;
    const attempt = Math.min(most, Math.max(least, used));
    return { attempt, maxAttempts, lastError: null, state };
  }),
);
const presented = fc.record({ leaseId: fc.constantFrom('l1', 'l2', 'l3', 'none'), holder: holders });
const events: fc.Arbitrary<WorkEvent> = fc.oneof(
  fc.record({
    type: fc.constant('claim' as const),
    now: times,
    ttlMs: fc.integer({ min: 1, max: 10_000 }),
    lease: leases,
    overQuota: fc.boolean(),
  }),
  fc.record({
    type: fc.constant('renew' as const),
    now: times,
    by: presented,
    ttlMs: fc.integer({ min: 1, max: 9 }),
  }),
  fc.record({ type: fc.constant('ack' as const), now: times, by: presented, result: fc.constant('2') }),
  fc.record({
    type: fc.constant('release' as const),
    now: times,
    by: presented,
    reason: fc.constantFrom('drain', 'crashed', 'budget: tokens', ''),
  }),
  fc.record({ type: fc.constant('tick' as const), now: times }),
  fc.record({ type: fc.constant('dependency.done' as const), now: times }),
  fc.record({ type: fc.constant('dependency.dropped' as const), now: times, dependency: fc.constant('d') }),
  fc.record({ type: fc.constant('requeue' as const), now: times }),
  fc.record({ type: fc.constant('drop' as const), now: times }),
);

/** The states each state may be followed by, by any single event. */
const FOLLOWS: Readonly<Record<WorkState['at'], readonly WorkState['at'][]>> = {
  submitted: ['submitted', 'ready', 'dead_letter', 'cancelled'],
  ready: ['ready', 'leased', 'cancelled'],
  leased: ['leased', 'done', 'ready', 'dead_letter', 'cancelled'],
  done: ['done'],
  dead_letter: ['dead_letter', 'ready', 'submitted', 'cancelled'],
  cancelled: ['cancelled'],
};

describe('the work machine', () => {
  it('answers every event in every state and moves only where the design allows', () => {
    const seen = new Set<string>();
    fc.assert(
      fc.property(works, events, (work, event) => {
        const next = step(work, event);
        seen.add(`${work.state.at} ${event.type}`);
        expect(FOLLOWS[work.state.at]).toContain(next.work.state.at);
        expect(next.work.attempt).toBeGreaterThanOrEqual(0);
        expect(next.work.attempt).toBeLessThanOrEqual(next.work.maxAttempts);
      }),
      { numRuns: 5_000 },
    );
    expect(seen.size).toBe(6 * 9);
  });

  it('never changes what is done', () => {
    const done = works.filter((work) => work.state.at === 'done');
    fc.assert(
      fc.property(done, events, (work, event) => {
        expect(step(work, event).work).toBe(work);
      }),
    );
  });

  it('lets only the current lease of its holder settle', () => {
    fc.assert(
      fc.property(works, events, (work, event) => {
        if (event.type !== 'ack' && event.type !== 'renew' && event.type !== 'release') return;
        const { state } = work;
        const own =
          (state.at === 'leased' || state.at === 'done') &&
          state.leaseId === event.by.leaseId &&
          state.holder === event.by.holder;
        const live = state.at === 'done' || (state.at === 'leased' && state.expiresAt > event.now);
        const { answer } = step(work, event);
        const accepted = own && live && (state.at === 'leased' || event.type === 'ack');
        expect(answer.type).toBe(accepted ? 'ok' : 'refused');
      }),
      { numRuns: 3_000 },
    );
  });

  it('ends every granted lease exactly once and grows the fencing token with every grant', () => {
    const moves = fc.array(fc.record({ event: events, wait: fc.integer({ min: 0, max: 6_000 }) }), {
      minLength: 1,
      maxLength: 60,
    });
    fc.assert(
      fc.property(moves, (history) => {
        let now = 0;
        let fencing = 0;
        let work = newWork({ maxAttempts: 3, notBefore: 0, waitingFor: 0 });
        const open = new Map<number, string>();
        const ends = new Map<number, number>();
        for (const { event, wait } of history) {
          now += wait;
          const before = work;
          const next: Step = step(work, current({ ...event, now } as WorkEvent, work, fencing + 1));
          work = next.work;
          for (const effect of next.effects) {
            if (effect.type === 'lease.expired') finish(effect.lease.fencing);
          }
          if (
            before.state.at === 'leased' &&
            next.effects.every((effect) => effect.type !== 'lease.expired')
          ) {
            const same = work.state.at === 'leased' && work.state.fencing === before.state.fencing;
            if (!same) finish(before.state.fencing);
          }
          if (next.answer.type === 'granted' && !next.answer.again) {
            expect(next.answer.lease.fencing).toBeGreaterThan(fencing);
            fencing = next.answer.lease.fencing;
            open.set(fencing, next.answer.lease.holder);
          }
          expect(open.size).toBe(work.state.at === 'leased' ? 1 : 0);
        }
        function finish(token: number): void {
          expect(open.delete(token)).toBe(true);
          ends.set(token, (ends.get(token) ?? 0) + 1);
        }
        for (const count of ends.values()) expect(count).toBe(1);
      }),
      { numRuns: 2_000 },
    );
  });

  it('backs off from half a second, doubling, to half a minute', () => {
    expect([1, 2, 3, 4, 5, 6, 7, 8, 50].map(backoffMs)).toEqual([
      500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000,
    ]);
    expect(backoffMs(0)).toBe(500);
  });
});

/** Makes a generated event fit the history: fresh leases, and often the lease that is in force. */
function current(event: WorkEvent, work: Work, fencing: number): WorkEvent {
  if (event.type === 'claim') {
    return { ...event, lease: { ...event.lease, leaseId: `l${fencing}`, fencing } };
  }
  if (event.type === 'ack' || event.type === 'renew' || event.type === 'release') {
    const { state } = work;
    if (state.at !== 'leased' || event.by.leaseId === 'none') return event;
    return { ...event, by: { leaseId: state.leaseId, holder: state.holder } };
  }
  return event;
}
