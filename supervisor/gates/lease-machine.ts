import type {
  Held,
  LeaseEffect,
  LeaseEnd,
  LeaseEvent,
  LeaseRules,
  LeaseState,
  LeaseStep,
} from './lease-model.ts';

/**
 * The life of one claim, as a pure machine: offered → claimed → acking | releasing → ended.
 *
 * Every granted lease ends in exactly one of acked, released, expired (invariant 3). Expiry is
 * judged by the ledger's clock alone; the holder only estimates it, from durations on its own
 * monotonic clock counted from before the call was sent, and has stopped the work by then.
 */
export const OFFERED: LeaseState = { state: 'offered', attempt: 1, abandoned: false };

/** Time kept back from the ttl to stop the work in, so that nobody else can be running yet. */
export function stopMargin(ttlMs: number): number {
  return Math.min(5_000, ttlMs * 0.2);
}

/** One step of the machine. Total: an event that means nothing in a state changes nothing. */
export function stepLease(state: LeaseState, event: LeaseEvent, now: number, rules: LeaseRules): LeaseStep {
  switch (state.state) {
    case 'offered':
      return stepOffered(state, event, now, rules);
    case 'claimed':
      return stepClaimed(state, event, now, rules);
    case 'acking':
      return stepAcking(state, event, now, rules);
    case 'releasing':
      return stepReleasing(state, event, now, rules);
    case 'ended':
      return { state, effects: [] };
  }
}

function stepOffered(
  state: Extract<LeaseState, { state: 'offered' }>,
  event: LeaseEvent,
  now: number,
  rules: LeaseRules,
): LeaseStep {
  switch (event.type) {
    case 'granted': {
      const held: Held = { leaseId: event.leaseId, expiresAt: event.sentAt + event.expiresInMs };
      // A reply that arrives after a drain began is given back at once, never run; so is one that
      // comes so late that the work would have to stop again, or that somebody else may hold it by now.
      if (state.abandoned) return release(held, 'drain');
      const margin = stopMargin(Math.min(event.expiresInMs, rules.ttlMs));
      if (held.expiresAt - margin <= now) return release(held, 'not_started: the grant came too late');
      return {
        state: { state: 'claimed', ...held },
        effects: [{ type: 'start' }, ...leaseTimers(held, now, rules)],
      };
    }
    case 'denied':
      return end({ kind: 'lost', heldBy: event.heldBy, retryAfterMs: event.retryAfterMs });
    case 'claim_failed':
      if (state.abandoned || state.attempt >= rules.claimAttempts) {
        return end({ kind: 'unasked', error: event.error });
      }
      return {
        state: { ...state, attempt: state.attempt + 1 },
        effects: [{ type: 'timer', name: 'retry', at: now + rules.retryMs(state.attempt) }],
      };
    case 'retry_due':
      return state.abandoned
        ? end({ kind: 'unasked', error: 'draining' })
        : { state, effects: [{ type: 'claim' }] };
    case 'abandon':
      return { state: { ...state, abandoned: true }, effects: [] };
    default:
      return { state, effects: [] };
  }
}

function stepClaimed(
  state: Extract<LeaseState, { state: 'claimed' }>,
  event: LeaseEvent,
  now: number,
  rules: LeaseRules,
): LeaseStep {
  switch (event.type) {
    case 'renew_due':
      return { state, effects: [{ type: 'renew', leaseId: state.leaseId }] };
    case 'renewed': {
      const held: Held = { leaseId: state.leaseId, expiresAt: event.sentAt + event.expiresInMs };
      return { state: { state: 'claimed', ...held }, effects: leaseTimers(held, now, rules) };
    }
    case 'renew_failed':
      // Transient until proven otherwise: ask again soon, and let the expiry timer end it.
      return {
        state,
        effects: [
          { type: 'timer', name: 'renew', at: now + Math.max(50, rules.ttlMs * rules.renewFraction * 0.25) },
        ],
      };
    case 'renew_refused':
      return lost('lease_lost', 'the coordination server says the lease is no longer ours', 0);
    case 'expiry_due':
      return lost('lease_expired', 'it could not be renewed in time', Math.max(0, state.expiresAt - now));
    case 'completed':
      return {
        state: {
          state: 'acking',
          leaseId: state.leaseId,
          expiresAt: state.expiresAt,
          attempt: 1,
          result: event.result,
        },
        effects: [{ type: 'ack', leaseId: state.leaseId, result: event.result }],
      };
    case 'not_completed':
      return release(state, event.reason);
    default:
      return { state, effects: [] };
  }
}

function stepAcking(
  state: Extract<LeaseState, { state: 'acking' }>,
  event: LeaseEvent,
  now: number,
  rules: LeaseRules,
): LeaseStep {
  switch (event.type) {
    case 'acked':
      return end({ kind: 'acked' });
    case 'ack_refused':
      return end({ kind: 'expired', why: 'the result was refused: the lease is no longer ours' });
    case 'ack_failed':
      return retryUntilExpiry(state, now, rules, event.error);
    case 'retry_due':
      return { state, effects: [{ type: 'ack', leaseId: state.leaseId, result: state.result }] };
    default:
      // A renewal in flight when the ack wins changes nothing, and neither does our own estimate
      // of the expiry: only the ledger may refuse the result.
      return { state, effects: [] };
  }
}

function stepReleasing(
  state: Extract<LeaseState, { state: 'releasing' }>,
  event: LeaseEvent,
  now: number,
  rules: LeaseRules,
): LeaseStep {
  switch (event.type) {
    case 'released':
      return end({ kind: 'released', reason: state.reason });
    case 'release_refused':
      return end({ kind: 'expired', why: 'the release was refused: the lease is no longer ours' });
    case 'release_failed':
      return retryUntilExpiry(state, now, rules, event.error);
    case 'retry_due':
      return { state, effects: [{ type: 'release', leaseId: state.leaseId, reason: state.reason }] };
    default:
      return { state, effects: [] };
  }
}

/** An ack or release that could not be delivered is tried again for as long as the lease may live. */
function retryUntilExpiry(
  state: Extract<LeaseState, { state: 'acking' | 'releasing' }>,
  now: number,
  rules: LeaseRules,
  error: string,
): LeaseStep {
  const at = now + rules.retryMs(state.attempt);
  if (at >= state.expiresAt) return end({ kind: 'expired', why: error });
  return { state: { ...state, attempt: state.attempt + 1 }, effects: [{ type: 'timer', name: 'retry', at }] };
}

function leaseTimers(held: Held, now: number, rules: LeaseRules): LeaseEffect[] {
  const left = Math.max(0, held.expiresAt - now);
  return [
    { type: 'timer', name: 'renew', at: now + left * rules.renewFraction },
    { type: 'timer', name: 'expiry', at: held.expiresAt - stopMargin(Math.min(left, rules.ttlMs)) },
  ];
}

function release(held: Held, reason: string): LeaseStep {
  return {
    state: { state: 'releasing', leaseId: held.leaseId, expiresAt: held.expiresAt, attempt: 1, reason },
    effects: [{ type: 'release', leaseId: held.leaseId, reason }],
  };
}

function lost(cause: 'lease_lost' | 'lease_expired', why: string, withinMs: number): LeaseStep {
  const step = end({ kind: 'expired', why });
  return { state: step.state, effects: [{ type: 'stop', cause, withinMs }, ...step.effects] };
}

function end(how: LeaseEnd): LeaseStep {
  return { state: { state: 'ended', end: how }, effects: [{ type: 'ended', end: how }] };
}
