import type { FailureReason } from './model.ts';

/**
 * Retries and failover over the ordered endpoint list, as a pure decision. An endpoint that
 * refuses the credential or the request is out for the rest of the run; one that is unreachable is
 * tried `maxAttempts` times a call and then passed over, and stays passed over until the others
 * fail too.
 */

/** How a request failed. */
export interface Failure {
  readonly reason: FailureReason;
  /** Trying the same endpoint again cannot help. */
  readonly final: boolean;
  /** What the endpoint asked for in Retry-After, ms; null when it did not. */
  readonly retryAfterMs: number | null;
}

export interface FailoverState {
  readonly endpoints: number;
  readonly maxAttempts: number;
  /** Where the next request goes. */
  readonly current: number;
  /** Requests already made there for this call. */
  readonly attempts: number;
  /** Passed over in this call. */
  readonly failed: ReadonlySet<number>;
  /** Out for good. */
  readonly excluded: ReadonlySet<number>;
}

export type FailoverDecision =
  | { readonly kind: 'retry'; readonly endpoint: number; readonly delayMs: number }
  | { readonly kind: 'switch'; readonly endpoint: number }
  | { readonly kind: 'give_up' };

const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 10_000;
/** An endpoint that wants a longer rest than this counts as down, ms. */
export const LONGEST_RETRY_AFTER_MS = 60_000;

export function initialFailover(endpoints: number, maxAttempts: number): FailoverState {
  return { endpoints, maxAttempts, current: 0, attempts: 0, failed: new Set(), excluded: new Set() };
}

/** A new call begins where the last one succeeded. Null when every endpoint is excluded. */
export function beginCall(state: FailoverState): FailoverState | null {
  const fresh: FailoverState = { ...state, attempts: 0, failed: new Set() };
  const next = nextEndpoint(fresh, state.current);
  return next === null ? null : { ...fresh, current: next };
}

/**
 * What to do after a failed request.
 *
 * @param random in [0, 1), for the jitter of the delay
 */
export function afterFailure(
  state: FailoverState,
  failure: Failure,
  random: number,
): { readonly state: FailoverState; readonly decision: FailoverDecision } {
  const attempts = state.attempts + 1;
  const restTooLong = failure.retryAfterMs !== null && failure.retryAfterMs > LONGEST_RETRY_AFTER_MS;
  if (!failure.final && !restTooLong && attempts < state.maxAttempts) {
    const backoff = Math.min(FIRST_DELAY_MS * 2 ** (attempts - 1), LONGEST_DELAY_MS);
    const jittered = backoff * (0.5 + random / 2);
    // Jitter is added to Retry-After, never taken from it: children of a fleet must not return as one.
    const delayMs = failure.retryAfterMs === null ? jittered : failure.retryAfterMs + random * FIRST_DELAY_MS;
    return { state: { ...state, attempts }, decision: { kind: 'retry', endpoint: state.current, delayMs } };
  }
  const passed: FailoverState = failure.final
    ? { ...state, attempts: 0, excluded: new Set([...state.excluded, state.current]) }
    : { ...state, attempts: 0, failed: new Set([...state.failed, state.current]) };
  const next = nextEndpoint(passed, state.current);
  if (next === null) return { state: passed, decision: { kind: 'give_up' } };
  return { state: { ...passed, current: next }, decision: { kind: 'switch', endpoint: next } };
}

/** The first usable endpoint at or after `from`, in order and around. */
function nextEndpoint(state: FailoverState, from: number): number | null {
  for (let step = 0; step < state.endpoints; step++) {
    const index = (from + step) % state.endpoints;
    if (!state.failed.has(index) && !state.excluded.has(index)) return index;
  }
  return null;
}
