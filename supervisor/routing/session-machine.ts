/**
 * A warm session behind a `continue` route, as a pure machine: closed → idle ⇄ turning → closed,
 * or broken once its breaker opens. One child, strict order, one set of changed URIs per wake.
 */

export type SessionState =
  | { readonly state: 'closed'; readonly notBefore: number }
  | { readonly state: 'idle'; readonly runId: string; readonly wakes: number }
  | {
      readonly state: 'turning';
      readonly runId: string;
      readonly wakes: number;
      readonly keys: readonly string[];
    }
  /** Its events are refused, not queued for ever, until `until`. */
  | { readonly state: 'broken'; readonly until: number };

export type SessionEvent =
  /** Updates wait for the session and may be delivered. */
  | { readonly type: 'updates'; readonly keys: readonly string[]; readonly newRunId: string }
  | { readonly type: 'turned'; readonly runId: string }
  | { readonly type: 'ended'; readonly runId: string; readonly verdict: RestartVerdict }
  /** Its child was started under settings that have changed since. */
  | { readonly type: 'renew' }
  | { readonly type: 'close' };

/** What the restart governor says of a session that ended. */
export type RestartVerdict =
  | { readonly kind: 'retry'; readonly at: number }
  | { readonly kind: 'open'; readonly until: number };

export type SessionEffect =
  | { readonly type: 'open'; readonly runId: string }
  | { readonly type: 'wake'; readonly runId: string; readonly keys: readonly string[] }
  /** The child is not needed any more; its end is no failure. */
  | { readonly type: 'dismiss'; readonly runId: string }
  | { readonly type: 'settle'; readonly keys: readonly string[] }
  /** The turn did not happen: these are to be delivered again at `at`. */
  | { readonly type: 'put_back'; readonly keys: readonly string[]; readonly at: number }
  | { readonly type: 'refuse'; readonly keys: readonly string[] };

export interface SessionStep {
  readonly state: SessionState;
  readonly effects: readonly SessionEffect[];
}

export const CLOSED: SessionState = { state: 'closed', notBefore: 0 };

/** One step of the machine. Total: an event that means nothing in a state changes nothing. */
export function stepSession(state: SessionState, event: SessionEvent, now: number): SessionStep {
  switch (event.type) {
    case 'updates':
      return stepUpdates(state, event, now);
    case 'turned':
      if (state.state !== 'turning' || state.runId !== event.runId) return { state, effects: [] };
      return {
        state: { state: 'idle', runId: state.runId, wakes: state.wakes },
        effects: [{ type: 'settle', keys: state.keys }],
      };
    case 'ended':
      return stepEnded(state, event);
    case 'renew':
      if (state.state !== 'idle') return { state, effects: [] };
      return { state: CLOSED, effects: [{ type: 'dismiss', runId: state.runId }] };
    case 'close':
      return {
        state: { state: 'closed', notBefore: Number.POSITIVE_INFINITY },
        effects: state.state === 'turning' ? [{ type: 'settle', keys: state.keys }] : [],
      };
  }
}

function stepUpdates(
  state: SessionState,
  event: Extract<SessionEvent, { type: 'updates' }>,
  now: number,
): SessionStep {
  const { keys } = event;
  switch (state.state) {
    case 'closed':
      if (now < state.notBefore) return { state, effects: [{ type: 'put_back', keys, at: state.notBefore }] };
      return opened(event);
    case 'broken':
      return now < state.until ? { state, effects: [{ type: 'refuse', keys }] } : opened(event);
    case 'idle':
      return {
        state: { state: 'turning', runId: state.runId, wakes: state.wakes + 1, keys },
        effects: [{ type: 'wake', runId: state.runId, keys }],
      };
    case 'turning':
      return { state, effects: [{ type: 'put_back', keys, at: now }] };
  }
}

function opened(event: Extract<SessionEvent, { type: 'updates' }>): SessionStep {
  return {
    state: { state: 'turning', runId: event.newRunId, wakes: 1, keys: event.keys },
    effects: [
      { type: 'open', runId: event.newRunId },
      { type: 'wake', runId: event.newRunId, keys: event.keys },
    ],
  };
}

function stepEnded(state: SessionState, event: Extract<SessionEvent, { type: 'ended' }>): SessionStep {
  if (state.state !== 'idle' && state.state !== 'turning') return { state, effects: [] };
  if (state.runId !== event.runId) return { state, effects: [] };
  const keys = state.state === 'turning' ? state.keys : [];
  if (event.verdict.kind === 'open') {
    return {
      state: { state: 'broken', until: event.verdict.until },
      effects: keys.length > 0 ? [{ type: 'refuse', keys }] : [],
    };
  }
  return {
    state: { state: 'closed', notBefore: event.verdict.at },
    effects: keys.length > 0 ? [{ type: 'put_back', keys, at: event.verdict.at }] : [],
  };
}

/** The machine as a table, for docs/states.md. Anything not listed changes nothing. */
export const TRANSITIONS = [
  { state: 'closed', event: 'updates', next: 'turning', effects: 'open, wake', note: 'after the backoff' },
  { state: 'closed', event: 'updates', next: 'closed', effects: 'put_back', note: 'during the backoff' },
  { state: 'idle', event: 'updates', next: 'turning', effects: 'wake', note: 'one set of URIs per wake' },
  {
    state: 'turning',
    event: 'updates',
    next: 'turning',
    effects: 'put_back',
    note: 'strict order: one turn at a time',
  },
  { state: 'turning', event: 'turned', next: 'idle', effects: 'settle', note: '' },
  {
    state: 'turning',
    event: 'ended',
    next: 'closed',
    effects: 'put_back',
    note: 'the turn is made again by the next child',
  },
  { state: 'turning', event: 'ended', next: 'broken', effects: 'refuse', note: 'the breaker opened' },
  { state: 'idle', event: 'ended', next: 'closed', effects: '', note: '' },
  { state: 'idle', event: 'renew', next: 'closed', effects: 'dismiss', note: 'its route has changed' },
  { state: 'idle', event: 'ended', next: 'broken', effects: '', note: 'the breaker opened' },
  {
    state: 'broken',
    event: 'updates',
    next: 'broken',
    effects: 'refuse',
    note: 'until the breaker half-opens',
  },
  { state: 'broken', event: 'updates', next: 'turning', effects: 'open, wake', note: 'afterwards' },
  { state: 'closed', event: 'close', next: 'closed', effects: '', note: 'draining' },
  { state: 'idle', event: 'close', next: 'closed', effects: '', note: 'draining' },
  { state: 'turning', event: 'close', next: 'closed', effects: 'settle', note: 'draining' },
  { state: 'broken', event: 'close', next: 'closed', effects: '', note: 'draining' },
] as const;
