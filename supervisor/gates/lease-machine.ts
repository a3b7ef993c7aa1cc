/**
 * The life of one claim, as a pure machine: offered → claimed → acking | releasing → ended.
 *
 * Every granted lease ends in exactly one of acked, released, expired (invariant 3). Expiry is
 * judged by the ledger's clock alone; the holder only estimates it, from durations on its own
 * monotonic clock counted from before the call was sent, and has stopped the work by then.
 */

export type LeaseState =
  | { readonly state: 'offered'; readonly attempt: number; readonly abandoned: boolean }
  | ({ readonly state: 'claimed' } & Held)
  | ({ readonly state: 'acking'; readonly attempt: number; readonly result: string } & Held)
  | ({ readonly state: 'releasing'; readonly attempt: number; readonly reason: string } & Held)
  | { readonly state: 'ended'; readonly end: LeaseEnd };

interface Held {
  readonly leaseId: string;
  /** Our estimate, monotonic ms; never later than the ledger's own. */
  readonly expiresAt: number;
}

export type LeaseEnd =
  | { readonly kind: 'acked' }
  | { readonly kind: 'released'; readonly reason: string }
  /** Held, then lost: it ran out, or the ledger said it is no longer ours. */
  | { readonly kind: 'expired'; readonly why: string }
  /** Never ours: somebody else holds it, or it is done or given up. `retryAfterMs`: until another try could succeed. */
  | { readonly kind: 'lost'; readonly heldBy: string; readonly retryAfterMs?: number | undefined }
  /** Never ours: the ledger could not be asked. To be offered again later. */
  | { readonly kind: 'unasked'; readonly error: string };

export type LeaseEvent =
  | {
      readonly type: 'granted';
      readonly leaseId: string;
      readonly expiresInMs: number;
      readonly sentAt: number;
    }
  | { readonly type: 'denied'; readonly heldBy: string; readonly retryAfterMs?: number | undefined }
  | { readonly type: 'claim_failed'; readonly error: string }
  | { readonly type: 'retry_due' }
  | { readonly type: 'abandon' }
  | { readonly type: 'renew_due' }
  | { readonly type: 'renewed'; readonly expiresInMs: number; readonly sentAt: number }
  | { readonly type: 'renew_refused' }
  | { readonly type: 'renew_failed'; readonly error: string }
  | { readonly type: 'expiry_due' }
  | { readonly type: 'completed'; readonly result: string }
  | { readonly type: 'not_completed'; readonly reason: string }
  | { readonly type: 'acked' }
  | { readonly type: 'ack_refused' }
  | { readonly type: 'ack_failed'; readonly error: string }
  | { readonly type: 'released' }
  | { readonly type: 'release_refused' }
  | { readonly type: 'release_failed'; readonly error: string };

export type LeaseEffect =
  | { readonly type: 'claim' }
  | { readonly type: 'renew'; readonly leaseId: string }
  | { readonly type: 'ack'; readonly leaseId: string; readonly result: string }
  | { readonly type: 'release'; readonly leaseId: string; readonly reason: string }
  /** The item is ours: start the work. */
  | { readonly type: 'start' }
  /** Stop the work; the process group must be gone within `withinMs`. */
  | { readonly type: 'stop'; readonly cause: 'lease_lost' | 'lease_expired'; readonly withinMs: number }
  | { readonly type: 'timer'; readonly name: 'retry' | 'renew' | 'expiry'; readonly at: number }
  | { readonly type: 'ended'; readonly end: LeaseEnd };

export interface LeaseStep {
  readonly state: LeaseState;
  readonly effects: readonly LeaseEffect[];
}

export interface LeaseRules {
  readonly ttlMs: number;
  readonly renewFraction: number;
  /** How often a claim that could not be asked is tried before the item is put back. */
  readonly claimAttempts: number;
  /** Pause before try n+1, ms. */
  readonly retryMs: (attempt: number) => number;
}

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

/** The machine as a table, for docs/states.md. Anything not listed changes nothing. */
export const TRANSITIONS = [
  {
    state: 'offered',
    event: 'granted',
    next: 'claimed',
    effects: 'start, timer renew, timer expiry',
    note: '',
  },
  {
    state: 'offered',
    event: 'granted',
    next: 'releasing',
    effects: 'release',
    note: 'abandoned: a drain began; or it came too late',
  },
  { state: 'offered', event: 'denied', next: 'ended', effects: 'ended lost', note: '' },
  { state: 'offered', event: 'claim_failed', next: 'offered', effects: 'timer retry', note: 'attempts left' },
  {
    state: 'offered',
    event: 'claim_failed',
    next: 'ended',
    effects: 'ended unasked',
    note: 'no attempts left, or abandoned',
  },
  { state: 'offered', event: 'retry_due', next: 'offered', effects: 'claim', note: '' },
  { state: 'offered', event: 'retry_due', next: 'ended', effects: 'ended unasked', note: 'abandoned' },
  { state: 'offered', event: 'abandon', next: 'offered', effects: '', note: 'marked abandoned' },
  { state: 'claimed', event: 'renew_due', next: 'claimed', effects: 'renew', note: '' },
  { state: 'claimed', event: 'renewed', next: 'claimed', effects: 'timer renew, timer expiry', note: '' },
  { state: 'claimed', event: 'renew_failed', next: 'claimed', effects: 'timer renew', note: 'transient' },
  {
    state: 'claimed',
    event: 'renew_refused',
    next: 'ended',
    effects: 'stop at once, ended expired',
    note: 'definitive',
  },
  {
    state: 'claimed',
    event: 'expiry_due',
    next: 'ended',
    effects: 'stop within the margin, ended expired',
    note: '',
  },
  { state: 'claimed', event: 'completed', next: 'acking', effects: 'ack', note: '' },
  { state: 'claimed', event: 'not_completed', next: 'releasing', effects: 'release', note: '' },
  { state: 'acking', event: 'acked', next: 'ended', effects: 'ended acked', note: '' },
  {
    state: 'acking',
    event: 'ack_refused',
    next: 'ended',
    effects: 'ended expired',
    note: 'somebody else owns it',
  },
  {
    state: 'acking',
    event: 'ack_failed',
    next: 'acking',
    effects: 'timer retry',
    note: 'while the lease may live',
  },
  { state: 'acking', event: 'ack_failed', next: 'ended', effects: 'ended expired', note: 'too late' },
  { state: 'acking', event: 'retry_due', next: 'acking', effects: 'ack', note: '' },
  { state: 'releasing', event: 'released', next: 'ended', effects: 'ended released', note: '' },
  { state: 'releasing', event: 'release_refused', next: 'ended', effects: 'ended expired', note: '' },
  {
    state: 'releasing',
    event: 'release_failed',
    next: 'releasing',
    effects: 'timer retry',
    note: 'while the lease may live',
  },
  { state: 'releasing', event: 'release_failed', next: 'ended', effects: 'ended expired', note: 'too late' },
  { state: 'releasing', event: 'retry_due', next: 'releasing', effects: 'release', note: '' },
] as const;
