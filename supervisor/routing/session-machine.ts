/**
 * A warm session behind a `continue` route, as a pure machine: closed → idle ⇄ turning → closed,
 * or broken once its breaker opens. One child, strict order, one set of changed URIs per wake. On a
 * claim route the session itself is claimed first, and its lease is held for as long as it is warm.
 */

export type SessionState =
  | { readonly state: 'closed'; readonly notBefore: number }
  /** Asked the coordination server whether the session is ours. */
  | { readonly state: 'claiming'; readonly runId: string; readonly keys: readonly string[] }
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
  | {
      readonly type: 'updates';
      readonly keys: readonly string[];
      readonly newRunId: string;
      /** The session has to be claimed before it is opened. */
      readonly claim: boolean;
    }
  | { readonly type: 'claimed'; readonly runId: string }
  /** Another replica has the session, or (`elsewhere` false) nobody could be asked. */
  | { readonly type: 'unclaimed'; readonly runId: string; readonly elsewhere: boolean; readonly at: number }
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
  | { readonly type: 'claim'; readonly runId: string }
  | { readonly type: 'open'; readonly runId: string }
  | { readonly type: 'wake'; readonly runId: string; readonly keys: readonly string[] }
  /** The child is not needed any more; its end is no failure. */
  | { readonly type: 'dismiss'; readonly runId: string }
  | { readonly type: 'settle'; readonly keys: readonly string[] }
  /** The turn did not happen: these are to be delivered again at `at`. */
  | { readonly type: 'put_back'; readonly keys: readonly string[]; readonly at: number }
  /** Another replica's to do: looked at again at `at`, in case it dies. */
  | { readonly type: 'revisit'; readonly keys: readonly string[]; readonly at: number }
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
    case 'claimed':
      if (state.state !== 'claiming' || state.runId !== event.runId) return { state, effects: [] };
      return opened(state.runId, state.keys);
    case 'unclaimed':
      if (state.state !== 'claiming' || state.runId !== event.runId) return { state, effects: [] };
      return {
        state: event.elsewhere ? CLOSED : { state: 'closed', notBefore: event.at },
        effects: [{ type: event.elsewhere ? 'revisit' : 'put_back', keys: state.keys, at: event.at }],
      };
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
        effects: 'keys' in state ? [{ type: 'settle', keys: state.keys }] : [],
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
      return begun(event);
    case 'broken':
      return now < state.until ? { state, effects: [{ type: 'refuse', keys }] } : begun(event);
    case 'idle':
      return {
        state: { state: 'turning', runId: state.runId, wakes: state.wakes + 1, keys },
        effects: [{ type: 'wake', runId: state.runId, keys }],
      };
    case 'claiming':
    case 'turning':
      return { state, effects: [{ type: 'put_back', keys, at: now }] };
  }
}

function begun({ keys, newRunId, claim }: Extract<SessionEvent, { type: 'updates' }>): SessionStep {
  if (!claim) return opened(newRunId, keys);
  return {
    state: { state: 'claiming', runId: newRunId, keys },
    effects: [{ type: 'claim', runId: newRunId }],
  };
}

function opened(runId: string, keys: readonly string[]): SessionStep {
  return {
    state: { state: 'turning', runId, wakes: 1, keys },
    effects: [
      { type: 'open', runId },
      { type: 'wake', runId, keys },
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
  { state: 'closed', event: 'updates', next: 'claiming', effects: 'claim', note: 'on a claim route' },
  { state: 'broken', event: 'updates', next: 'claiming', effects: 'claim', note: 'on a claim route' },
  { state: 'claiming', event: 'updates', next: 'claiming', effects: 'put_back', note: 'until the answer' },
  { state: 'claiming', event: 'claimed', next: 'turning', effects: 'open, wake', note: '' },
  {
    state: 'claiming',
    event: 'unclaimed',
    next: 'closed',
    effects: 'revisit',
    note: 'another replica has it',
  },
  {
    state: 'claiming',
    event: 'unclaimed',
    next: 'closed',
    effects: 'put_back',
    note: 'nobody could be asked',
  },
  { state: 'claiming', event: 'close', next: 'closed', effects: 'settle', note: 'draining' },
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
