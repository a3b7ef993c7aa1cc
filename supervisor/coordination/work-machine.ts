import {
  HELD_BY_ACKED,
  HELD_BY_DEAD_LETTER,
  HELD_BY_QUOTA,
  HELD_BY_WAITING,
  releaseKeepsAttempt,
} from '../../protocol/work-tools.ts';
import type { Refusal } from './ledger.ts';
import type { Answer, Step, Work, WorkEffect, WorkEvent, WorkState } from './work-model.ts';

/**
 * The life of a work item, as a pure function total over state × event:
 *
 *   submitted → ready → leased → done | ready | dead_letter | cancelled
 *
 * Adapters load an item, apply an event and store what comes back in the same transaction; none
 * of them decides anything itself. Times are milliseconds of the ledger's clock.
 */

const BACKOFF_BASE_MS = 500;
const BACKOFF_CAP_MS = 30_000;
const NONE: readonly WorkEffect[] = [];
const OK: Answer = { type: 'ok', expiresInMs: null };

/**
 * Pause before the ledger itself offers a failed item again, ms: 500, doubling, at most 30,000.
 * A claimant that names the item need not wait (contract, section 9: claimable again at once).
 */
export function backoffMs(attempt: number): number {
  return Math.min(BACKOFF_CAP_MS, BACKOFF_BASE_MS * 2 ** Math.max(0, Math.min(attempt - 1, 16)));
}

/** A new item. */
export function newWork(options: {
  readonly maxAttempts: number;
  readonly notBefore: number;
  readonly waitingFor: number;
}): Work {
  const { maxAttempts, notBefore, waitingFor } = options;
  const state: WorkState =
    waitingFor > 0 ? { at: 'submitted', waitingFor, notBefore } : { at: 'ready', notBefore };
  return { attempt: 0, maxAttempts, lastError: null, state };
}

/** Applies one event. */
export function step(work: Work, event: WorkEvent): Step {
  if (work.state.at === 'leased' && work.state.expiresAt <= event.now)
    return afterExpiry(work, work.state, event);
  switch (event.type) {
    case 'claim':
      return claim(work, event);
    case 'renew':
    case 'ack':
    case 'release':
      return settle(work, event);
    case 'tick':
      return unchanged(work, OK);
    case 'dependency.done':
      return dependencyDone(work);
    case 'dependency.dropped':
      return dependencyDropped(work, event);
    case 'requeue':
      return requeue(work, event.now);
    case 'drop':
      return drop(work, event.now);
  }
}

function unchanged(work: Work, answer: Answer): Step {
  return { work, answer, effects: NONE };
}

function changed(work: Work, answer: Answer, effects: readonly WorkEffect[] = NONE): Step {
  return { work, answer, effects };
}

function refused(work: Work, reason: Refusal): Step {
  return unchanged(work, { type: 'refused', reason });
}

/** The lease ran out first, whatever the event is: the ledger's clock decides (invariant 2). */
function afterExpiry(work: Work, state: WorkState & { at: 'leased' }, event: WorkEvent): Step {
  const expired = giveBack(work, event.now, `lease of ${state.holder} expired`);
  const { leaseId, holder, fencing } = state;
  const effect: WorkEffect = { type: 'lease.expired', lease: { leaseId, holder, fencing } };
  const own =
    (event.type === 'renew' || event.type === 'ack' || event.type === 'release') &&
    event.by.leaseId === leaseId;
  const next = own ? refused(expired, 'expired') : step(expired, event);
  return { ...next, effects: [effect, ...next.effects] };
}

/** An attempt ended without success: back to ready, or given up when it was the last. */
function giveBack(work: Work, now: number, error: string): Work {
  return work.attempt >= work.maxAttempts
    ? { ...work, lastError: error, state: { at: 'dead_letter', since: now, waitingFor: 0 } }
    : { ...work, lastError: error, state: { at: 'ready', notBefore: now + backoffMs(work.attempt) } };
}

function claim(work: Work, event: WorkEvent & { type: 'claim' }): Step {
  const { state } = work;
  switch (state.at) {
    case 'submitted':
      return unchanged(work, { type: 'held', by: HELD_BY_WAITING, retryAfterMs: null });
    case 'ready': {
      // A delay asked for by the submitter binds everybody; backoff binds only the ledger's choice.
      if (work.attempt === 0 && state.notBefore > event.now) {
        return unchanged(work, {
          type: 'held',
          by: HELD_BY_WAITING,
          retryAfterMs: state.notBefore - event.now,
        });
      }
      if (event.overQuota) return unchanged(work, { type: 'held', by: HELD_BY_QUOTA, retryAfterMs: null });
      const attempt = work.attempt + 1;
      return changed(
        {
          ...work,
          attempt,
          state: { at: 'leased', ...event.lease, expiresAt: event.now + event.ttlMs, renewed: false },
        },
        { type: 'granted', lease: event.lease, expiresInMs: event.ttlMs, attempt, again: false },
      );
    }
    case 'leased':
      return state.holder === event.lease.holder
        ? claimAgain(work, state, event)
        : unchanged(work, { type: 'held', by: state.holder, retryAfterMs: state.expiresAt - event.now });
    case 'done':
      return unchanged(work, { type: 'held', by: HELD_BY_ACKED, retryAfterMs: null });
    case 'dead_letter':
    case 'cancelled':
      return unchanged(work, { type: 'held', by: HELD_BY_DEAD_LETTER, retryAfterMs: null });
  }
}

/**
 * A holder asks for what it already holds. Where it has never renewed, the reply was lost: its own
 * lease comes back, with the time that is left and no more, so that a process which dies on the item
 * again and again cannot keep it. Where it has renewed it knew the lease and has ended it since, and
 * something it sent about that lease may still be under way: so it gets a new lease and a new
 * attempt, and whatever arrives late under the old one is refused.
 */
function claimAgain(
  work: Work,
  state: WorkState & { at: 'leased' },
  event: WorkEvent & { type: 'claim' },
): Step {
  const { leaseId, holder, fencing } = state;
  if (!state.renewed) {
    return unchanged(work, {
      type: 'granted',
      lease: { leaseId, holder, fencing },
      expiresInMs: state.expiresAt - event.now,
      attempt: work.attempt,
      again: true,
    });
  }
  const ended: WorkEffect = { type: 'lease.expired', lease: { leaseId, holder, fencing } };
  if (work.attempt >= work.maxAttempts) {
    const lastError = `${state.holder} lost its run ${work.attempt} times`;
    return changed(
      { ...work, lastError, state: { at: 'dead_letter', since: event.now, waitingFor: 0 } },
      { type: 'held', by: HELD_BY_DEAD_LETTER, retryAfterMs: null },
      [ended],
    );
  }
  const attempt = work.attempt + 1;
  const expiresAt = event.now + event.ttlMs;
  return changed(
    { ...work, attempt, state: { at: 'leased', ...event.lease, expiresAt, renewed: false } },
    { type: 'granted', lease: event.lease, expiresInMs: event.ttlMs, attempt, again: false },
    [ended],
  );
}

function settle(work: Work, event: WorkEvent & { type: 'renew' | 'ack' | 'release' }): Step {
  const { state } = work;
  if (state.at !== 'leased' && state.at !== 'done') return refused(work, 'not_current');
  if (state.leaseId !== event.by.leaseId) return refused(work, 'not_current');
  if (state.holder !== event.by.holder) return refused(work, 'not_holder');
  if (state.at === 'done') return event.type === 'ack' ? unchanged(work, OK) : refused(work, 'done');
  const { leaseId, holder, fencing } = state;
  switch (event.type) {
    case 'renew':
      return changed(
        { ...work, state: { ...state, expiresAt: event.now + event.ttlMs, renewed: true } },
        { type: 'ok', expiresInMs: event.ttlMs },
      );
    case 'ack':
      return changed(
        { ...work, state: { at: 'done', leaseId, holder, fencing, since: event.now, result: event.result } },
        OK,
        [{ type: 'dependents.release' }],
      );
    case 'release':
      // What did not fail costs no attempt and no pause (hard case H12).
      return releaseKeepsAttempt(event.reason)
        ? changed({ ...work, attempt: work.attempt - 1, state: { at: 'ready', notBefore: event.now } }, OK)
        : changed(giveBack(work, event.now, event.reason), OK);
  }
}

function dependencyDone(work: Work): Step {
  const { state } = work;
  if (state.at === 'dead_letter') {
    return changed({ ...work, state: { ...state, waitingFor: Math.max(0, state.waitingFor - 1) } }, OK);
  }
  if (state.at !== 'submitted') return unchanged(work, OK);
  const waitingFor = state.waitingFor - 1;
  return changed(
    {
      ...work,
      state: waitingFor > 0 ? { ...state, waitingFor } : { at: 'ready', notBefore: state.notBefore },
    },
    OK,
  );
}

/** Rather than wait for ever unseen, it becomes a dead letter that names the reason. */
function dependencyDropped(work: Work, event: WorkEvent & { type: 'dependency.dropped' }): Step {
  const { state } = work;
  if (state.at === 'dead_letter') return dependencyDone(work);
  if (state.at !== 'submitted') return unchanged(work, OK);
  return changed(
    {
      ...work,
      lastError: `it depends on ${event.dependency}, which was dropped`,
      state: { at: 'dead_letter', since: event.now, waitingFor: state.waitingFor - 1 },
    },
    OK,
  );
}

function requeue(work: Work, now: number): Step {
  const { state } = work;
  if (state.at !== 'dead_letter') return refused(work, state.at === 'done' ? 'done' : 'not_dead');
  const { maxAttempts } = work;
  const fresh = newWork({ maxAttempts, notBefore: now, waitingFor: state.waitingFor });
  return changed({ ...fresh, lastError: work.lastError }, OK);
}

function drop(work: Work, now: number): Step {
  switch (work.state.at) {
    case 'done':
      return refused(work, 'done');
    case 'cancelled':
      return unchanged(work, OK);
    default:
      return changed({ ...work, state: { at: 'cancelled', since: now } }, OK, [
        { type: 'dependents.abandon' },
      ]);
  }
}
