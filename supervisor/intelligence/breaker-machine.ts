/**
 * The circuit breaker of one model endpoint, shared by all children of a supervisor: what one child
 * learns about an endpoint the hard way, the next need not learn again.
 */
export type BreakerState =
  | { readonly state: 'closed'; readonly failures: number }
  /** Avoided until `until` (monotonic ms), then due for a trial. */
  | { readonly state: 'open'; readonly until: number; readonly backoffMs: number }
  /** One run is trying it; the others still avoid it until `until`. */
  | { readonly state: 'trial'; readonly until: number; readonly backoffMs: number };

export type FailureReason = 'unreachable' | 'auth' | 'timeout' | '5xx' | 'other';

export type BreakerEvent =
  | { readonly type: 'succeeded' }
  | { readonly type: 'failed'; readonly reason: FailureReason }
  /** A run is about to be given its list of endpoints. */
  | { readonly type: 'offered' };

export interface BreakerStep {
  readonly state: BreakerState;
  readonly effects: readonly ('opened' | 'closed')[];
}

export const FAILURES_TO_OPEN = 3;
export const FIRST_BACKOFF_MS = 5_000;
/** A refused credential is mended by people, not by waiting a little. */
export const AUTH_BACKOFF_MS = 30_000;
export const MAX_BACKOFF_MS = 60_000;
/** A trial nobody reported on is over after this, ms. */
export const TRIAL_MS = 30_000;

/** The table of the machine, for docs/states.md. */
export const TRANSITIONS = [
  { state: 'closed', event: 'succeeded', next: 'closed', effects: '', note: 'failures are forgotten' },
  {
    state: 'closed',
    event: 'failed',
    next: 'closed',
    effects: '',
    note: 'not the third in a row; or a rejected request',
  },
  {
    state: 'closed',
    event: 'failed',
    next: 'open',
    effects: 'opened',
    note: 'the third in a row, or a refused credential',
  },
  { state: 'closed', event: 'offered', next: 'closed', effects: '', note: '' },
  {
    state: 'open',
    event: 'succeeded',
    next: 'closed',
    effects: 'closed',
    note: 'a call that was under way, or a last resort',
  },
  { state: 'open', event: 'failed', next: 'open', effects: '', note: 'when it was due: the backoff doubles' },
  { state: 'open', event: 'offered', next: 'open', effects: '', note: 'not due: offered last' },
  {
    state: 'open',
    event: 'offered',
    next: 'trial',
    effects: '',
    note: 'due: this run gets it in its own place',
  },
  { state: 'trial', event: 'succeeded', next: 'closed', effects: 'closed', note: '' },
  { state: 'trial', event: 'failed', next: 'open', effects: '', note: 'the backoff doubles' },
  { state: 'trial', event: 'failed', next: 'trial', effects: '', note: 'a rejected request' },
  {
    state: 'trial',
    event: 'offered',
    next: 'trial',
    effects: '',
    note: 'offered last, until nobody reported for too long',
  },
] as const;

export const CLOSED: BreakerState = { state: 'closed', failures: 0 };

/** Total over state × event. `now` is monotonic, ms. */
export function breakerStep(state: BreakerState, event: BreakerEvent, now: number): BreakerStep {
  switch (event.type) {
    case 'succeeded':
      return { state: CLOSED, effects: state.state === 'closed' ? [] : ['closed'] };
    case 'failed':
      return failed(state, event.reason, now);
    case 'offered':
      return { state: offered(state, now), effects: [] };
  }
}

function failed(state: BreakerState, reason: FailureReason, now: number): BreakerStep {
  // A request the endpoint understood and rejected says nothing about the endpoint: one bad item must
  // not take it away from everybody.
  if (reason === 'other') return { state, effects: [] };
  switch (state.state) {
    case 'closed': {
      const failures = state.failures + 1;
      if (reason !== 'auth' && failures < FAILURES_TO_OPEN) {
        return { state: { state: 'closed', failures }, effects: [] };
      }
      const backoffMs = reason === 'auth' ? AUTH_BACKOFF_MS : FIRST_BACKOFF_MS;
      return { state: { state: 'open', until: now + backoffMs, backoffMs }, effects: ['opened'] };
    }
    case 'open':
      // Calls that were under way when it opened do not count again.
      return { state: now < state.until ? state : reopened(state.backoffMs, now), effects: [] };
    case 'trial':
      return { state: reopened(state.backoffMs, now), effects: [] };
  }
}

function reopened(before: number, now: number): BreakerState {
  const backoffMs = Math.min(before * 2, MAX_BACKOFF_MS);
  return { state: 'open', until: now + backoffMs, backoffMs };
}

function offered(state: BreakerState, now: number): BreakerState {
  if (state.state === 'closed' || now < state.until) return state;
  return { state: 'trial', until: now + TRIAL_MS, backoffMs: state.backoffMs };
}

/** Whether the next run should get it in its usual place: it works, or a trial is due. */
export function isUsable(state: BreakerState, now: number): boolean {
  return state.state === 'closed' || now >= state.until;
}

/** Whether it is known not to work. One that is due or on trial may work. */
export function isDown(state: BreakerState, now: number): boolean {
  return state.state === 'open' && now < state.until;
}
