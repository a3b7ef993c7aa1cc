/**
 * The life of one MCP connection, as a pure machine: connecting → live → lost → retrying → …
 *
 * `lost` is the time in which what is left of the old connection is torn down, so that a new one
 * never runs beside its sockets or its process. A server over HTTP is retried for ever; a stdio
 * server only as long as its restart governor allows.
 */

export type ConnectionState =
  /** `failures`: attempts that failed in a row before this one. */
  | { readonly state: 'connecting'; readonly failures: number; readonly everLive: boolean }
  | { readonly state: 'live'; readonly failures: number; readonly missed: number; readonly since: number }
  | { readonly state: 'lost'; readonly failures: number; readonly everLive: boolean; readonly reason: string }
  | {
      readonly state: 'retrying';
      readonly failures: number;
      readonly everLive: boolean;
      readonly reason: string;
    }
  | { readonly state: 'failed'; readonly reason: string }
  | { readonly state: 'closed' };

/** Whether to try again, decided at the edge: a backoff for HTTP, the restart governor for stdio. */
export type RetryDecision =
  | { readonly kind: 'retry'; readonly delayMs: number }
  | { readonly kind: 'give_up'; readonly reason: string };

export type ConnectionEvent =
  /** `at`: monotonic ms. */
  | { readonly type: 'opened'; readonly at: number }
  | { readonly type: 'open_failed'; readonly reason: string }
  | { readonly type: 'broken'; readonly reason: string; readonly at: number }
  | { readonly type: 'ping_ok' }
  | { readonly type: 'ping_missed'; readonly at: number }
  | { readonly type: 'torn_down'; readonly decision: RetryDecision }
  | { readonly type: 'retry_due' }
  | { readonly type: 'close' };

export type ConnectionEffect =
  | { readonly type: 'open' }
  | { readonly type: 'announce_up'; readonly first: boolean }
  | { readonly type: 'announce_down'; readonly reason: string }
  | { readonly type: 'count_failure'; readonly reason: string }
  | { readonly type: 'tear_down' }
  | { readonly type: 'wait'; readonly delayMs: number }
  | { readonly type: 'announce_failed'; readonly reason: string };

export interface ConnectionStep {
  readonly state: ConnectionState;
  readonly effects: readonly ConnectionEffect[];
}

/** A connection that stayed live this long starts its backoff afresh, ms. */
export const STABLE_MS = 10_000;
/** Pings that may go unanswered in a row before the connection counts as dead. */
export const PINGS_MISSED = 2;

export const INITIAL_STEP: ConnectionStep = {
  state: { state: 'connecting', failures: 0, everLive: false },
  effects: [{ type: 'open' }],
};

/**
 * Pause before the next attempt: doubling from 250 ms to 10 s, of which the upper half is jitter,
 * so that a fleet does not return to a restarted server in step.
 *
 * @param failures attempts that failed in a row, at least 1
 * @param jitter in [0, 1)
 */
export function backoffMs(failures: number, jitter: number): number {
  const full = Math.min(10_000, 250 * 2 ** Math.min(failures - 1, 10));
  return full * (0.5 + 0.5 * jitter);
}

/** One step. An event that does not concern the state leaves it as it is. */
export function stepConnection(state: ConnectionState, event: ConnectionEvent): ConnectionStep {
  if (event.type === 'close') {
    const open = state.state === 'connecting' || state.state === 'live';
    return { state: { state: 'closed' }, effects: open ? [{ type: 'tear_down' }] : [] };
  }
  switch (state.state) {
    case 'connecting':
      return fromConnecting(state, event);
    case 'live':
      return fromLive(state, event);
    case 'lost':
      return fromLost(state, event);
    case 'retrying':
      if (event.type !== 'retry_due') return { state, effects: [] };
      return {
        state: { state: 'connecting', failures: state.failures, everLive: state.everLive },
        effects: [{ type: 'open' }],
      };
    case 'failed':
    case 'closed':
      return { state, effects: [] };
  }
}

function fromConnecting(
  state: Extract<ConnectionState, { state: 'connecting' }>,
  event: ConnectionEvent,
): ConnectionStep {
  switch (event.type) {
    case 'opened':
      return {
        state: { state: 'live', failures: state.failures, missed: 0, since: event.at },
        effects: [{ type: 'announce_up', first: !state.everLive }],
      };
    case 'open_failed':
    case 'broken':
      return {
        state: {
          state: 'lost',
          failures: state.failures + 1,
          everLive: state.everLive,
          reason: event.reason,
        },
        effects: [{ type: 'count_failure', reason: event.reason }, { type: 'tear_down' }],
      };
    default:
      return { state, effects: [] };
  }
}

function fromLive(
  state: Extract<ConnectionState, { state: 'live' }>,
  event: ConnectionEvent,
): ConnectionStep {
  switch (event.type) {
    case 'broken':
      return lose(state, event.at, event.reason);
    case 'ping_ok':
      return { state: { ...state, missed: 0 }, effects: [] };
    case 'ping_missed': {
      const missed = state.missed + 1;
      if (missed < PINGS_MISSED) return { state: { ...state, missed }, effects: [] };
      return lose(state, event.at, `${missed} pings in a row were not answered`);
    }
    default:
      return { state, effects: [] };
  }
}

function lose(
  state: Extract<ConnectionState, { state: 'live' }>,
  at: number,
  reason: string,
): ConnectionStep {
  const failures = at - state.since >= STABLE_MS ? 1 : state.failures + 1;
  return {
    state: { state: 'lost', failures, everLive: true, reason },
    effects: [{ type: 'announce_down', reason }, { type: 'tear_down' }],
  };
}

function fromLost(
  state: Extract<ConnectionState, { state: 'lost' }>,
  event: ConnectionEvent,
): ConnectionStep {
  if (event.type !== 'torn_down') return { state, effects: [] };
  if (event.decision.kind === 'retry') {
    return {
      state: { ...state, state: 'retrying' },
      effects: [{ type: 'wait', delayMs: event.decision.delayMs }],
    };
  }
  const { reason } = event.decision;
  return { state: { state: 'failed', reason }, effects: [{ type: 'announce_failed', reason }] };
}

/** One row of the printed table. Several rows of one state and event differ by their note. */
export interface TransitionRow {
  readonly state: ConnectionState['state'];
  readonly event: ConnectionEvent['type'];
  readonly next: ConnectionState['state'];
  readonly effects: readonly ConnectionEffect['type'][];
  readonly note: string;
}

const LATE = 'late or not expected here; ignored';
const row = (
  state: TransitionRow['state'],
  event: TransitionRow['event'],
  next: TransitionRow['next'],
  effects: TransitionRow['effects'],
  note: string,
): TransitionRow => ({ state, event, next, effects, note });
const ignored = (state: TransitionRow['state'], ...events: TransitionRow['event'][]): TransitionRow[] =>
  events.map((event) => row(state, event, state, [], LATE));

/** The machine as a table, total over state and event: for docs/states.md and for the tests. */
export const TRANSITIONS: readonly TransitionRow[] = [
  row('connecting', 'opened', 'live', ['announce_up'], 'initialised, tools listed'),
  row('connecting', 'open_failed', 'lost', ['count_failure', 'tear_down'], 'one more failure in a row'),
  row('connecting', 'broken', 'lost', ['count_failure', 'tear_down'], 'broke while it was being opened'),
  row('connecting', 'close', 'closed', ['tear_down'], 'the attempt is given up'),
  ...ignored('connecting', 'ping_ok', 'ping_missed', 'torn_down', 'retry_due'),
  row('live', 'broken', 'lost', ['announce_down', 'tear_down'], 'stream, session or process gone'),
  row('live', 'ping_ok', 'live', [], 'missed pings are forgotten'),
  row('live', 'ping_missed', 'live', [], 'the first in a row'),
  row('live', 'ping_missed', 'lost', ['announce_down', 'tear_down'], 'the second in a row'),
  row('live', 'close', 'closed', ['tear_down'], 'asked to close'),
  ...ignored('live', 'opened', 'open_failed', 'torn_down', 'retry_due'),
  row('lost', 'torn_down', 'retrying', ['wait'], 'backoff, or what the restart governor grants'),
  row('lost', 'torn_down', 'failed', ['announce_failed'], 'the restart governor gives up (stdio only)'),
  row('lost', 'close', 'closed', [], 'the teardown is already under way'),
  ...ignored('lost', 'opened', 'open_failed', 'broken', 'ping_ok', 'ping_missed', 'retry_due'),
  row('retrying', 'retry_due', 'connecting', ['open'], 'the pause is over'),
  row('retrying', 'close', 'closed', [], 'nothing is open'),
  ...ignored('retrying', 'opened', 'open_failed', 'broken', 'ping_ok', 'ping_missed', 'torn_down'),
  row('failed', 'close', 'closed', [], 'nothing is open'),
  ...ignored('failed', 'opened', 'open_failed', 'broken', 'ping_ok', 'ping_missed', 'torn_down', 'retry_due'),
  ...ignored(
    'closed',
    'opened',
    'open_failed',
    'broken',
    'ping_ok',
    'ping_missed',
    'torn_down',
    'retry_due',
    'close',
  ),
];
