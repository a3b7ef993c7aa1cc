import type { StopCause } from './run.ts';

/**
 * Three detectors over one child: a deadline that is always finite, no progress, and no answer to
 * pings. Pure, on the monotonic clock: a stepped wall clock moves nothing. After a late tick (the
 * supervisor was stopped, or the machine slept) every window starts afresh, so that nobody is
 * killed for time in which nobody could run.
 */

export interface LivenessTimings {
  readonly tickMs: number;
  readonly pingMs: number;
  /** Unanswered pings that make a child wedged. */
  readonly pingMisses: number;
  readonly noProgressMs: number;
  /** A tick this much later than due opens fresh windows, ms. */
  readonly lateMs: number;
}

export interface Liveness {
  readonly name: 'idle' | 'watching' | 'paused' | 'convicted';
  /** Monotonic ms; null while idle: a warm child has no run to be late with. */
  readonly deadlineAt: number | null;
  readonly progressAt: number;
  /** When the last ping went out; null before the first. */
  readonly pingAt: number | null;
  /** Pings sent since the last answer. */
  readonly unanswered: number;
  readonly tickAt: number;
  /** Wall minus monotonic at the last tick: a jump says that the machine slept or was stepped. */
  readonly wallOffset: number;
  /** Until when each tool call in flight accounts for the silence, by request id. */
  readonly calls: ReadonlyMap<number, CallWindow>;
}

export interface CallWindow {
  readonly since: number;
  /** Longest the call itself may go without progress: the broker ends it then, ms. */
  readonly timeoutMs: number;
}

export type LivenessEvent =
  | { readonly type: 'assigned'; readonly now: number; readonly deadlineMs: number }
  /** A session's turn is over: until it is woken again it owes nothing but answers to pings. */
  | { readonly type: 'rested'; readonly now: number }
  | { readonly type: 'progress'; readonly now: number }
  | { readonly type: 'pong'; readonly now: number }
  | { readonly type: 'call'; readonly now: number; readonly id: number; readonly timeoutMs: number }
  | { readonly type: 'call_progress'; readonly now: number; readonly id: number }
  | { readonly type: 'call_done'; readonly now: number; readonly id: number }
  | { readonly type: 'paused'; readonly now: number }
  | { readonly type: 'resumed'; readonly now: number }
  | { readonly type: 'tick'; readonly now: number; readonly wall: number };

export type LivenessEffect =
  | { readonly type: 'ping' }
  | { readonly type: 'verdict'; readonly cause: Extract<StopCause, 'deadline' | 'no_progress' | 'wedged'> };

/** What a tool call may take beyond its own limit before its child is blamed, ms. */
const CALL_SLACK_MS = 5_000;

export function livenessStart(now: number, wall: number): Liveness {
  return {
    name: 'idle',
    deadlineAt: null,
    progressAt: now,
    pingAt: null,
    unanswered: 0,
    tickAt: now,
    wallOffset: wall - now,
    calls: new Map(),
  };
}

interface Stepped {
  readonly state: Liveness;
  readonly effects: readonly LivenessEffect[];
}

export function livenessStep(state: Liveness, event: LivenessEvent, timings: LivenessTimings): Stepped {
  if (state.name === 'convicted') return { state, effects: [] };
  const { now } = event;
  switch (event.type) {
    case 'assigned':
      return same({ ...state, name: 'watching', deadlineAt: now + event.deadlineMs, progressAt: now });
    case 'rested':
      return same({ ...state, name: 'idle', deadlineAt: null, progressAt: now, calls: new Map() });
    case 'progress':
      return same({ ...state, progressAt: now });
    case 'pong':
      return same({ ...state, unanswered: 0 });
    case 'call':
      return same({
        ...state,
        progressAt: now,
        calls: new Map(state.calls).set(event.id, { since: now, timeoutMs: event.timeoutMs }),
      });
    case 'call_progress': {
      const call = state.calls.get(event.id);
      if (call === undefined) return same(state);
      const calls = new Map(state.calls).set(event.id, { ...call, since: now });
      return same({ ...state, progressAt: now, calls });
    }
    case 'call_done': {
      const calls = new Map(state.calls);
      calls.delete(event.id);
      return same({ ...state, progressAt: now, calls });
    }
    case 'paused':
      return same(state.name === 'watching' ? { ...state, name: 'paused' } : state);
    case 'resumed':
      return same(state.name === 'paused' ? { ...state, name: 'watching', progressAt: now } : state);
    case 'tick':
      return tick(state, event.now, event.wall, timings);
  }
}

function same(state: Liveness): Stepped {
  return { state, effects: [] };
}

function tick(before: Liveness, now: number, wall: number, timings: LivenessTimings): Stepped {
  const wallOffset = wall - now;
  const late = now - before.tickAt > timings.tickMs + timings.lateMs;
  const slept = Math.abs(wallOffset - before.wallOffset) > timings.lateMs;
  if (late || slept) return same(afresh(before, now, wallOffset, timings));
  const state: Liveness = { ...before, tickAt: now, wallOffset };

  if (state.deadlineAt !== null && now >= state.deadlineAt) return convict(state, 'deadline');
  if (state.name === 'watching' && now >= silentUntil(state, timings)) return convict(state, 'no_progress');
  if (state.pingAt !== null && now - state.pingAt < timings.pingMs) return same(state);
  if (state.unanswered >= timings.pingMisses) return convict(state, 'wedged');
  return {
    state: { ...state, pingAt: now, unanswered: state.unanswered + 1 },
    effects: [{ type: 'ping' }],
  };
}

/** No verdict now, and a full ping window before the next one. */
function afresh(state: Liveness, now: number, wallOffset: number, timings: LivenessTimings): Liveness {
  return {
    ...state,
    tickAt: now,
    wallOffset,
    progressAt: now,
    unanswered: 0,
    pingAt: null,
    deadlineAt: state.deadlineAt === null ? null : Math.max(state.deadlineAt, now + timings.pingMs),
    calls: new Map([...state.calls].map(([id, call]) => [id, { ...call, since: now }])),
  };
}

/** Until when silence is accounted for: by the child's own window, or by a call's own limit. */
export function silentUntil(state: Liveness, timings: LivenessTimings): number {
  let until = state.progressAt + timings.noProgressMs;
  for (const call of state.calls.values()) {
    until = Math.max(until, call.since + call.timeoutMs + CALL_SLACK_MS);
  }
  return until;
}

function convict(state: Liveness, cause: Extract<StopCause, 'deadline' | 'no_progress' | 'wedged'>): Stepped {
  return { state: { ...state, name: 'convicted' }, effects: [{ type: 'verdict', cause }] };
}

export type Health = 'healthy' | 'busy' | 'stuck' | 'exiting' | 'dead';

/**
 * What a child is, from the two things it cannot fake together: its end of the pipe and its
 * answers. End of file without an exit is a child on its way out; silence towards pings while it
 * still makes progress is a busy event loop.
 */
export function classify(seen: {
  readonly exited: boolean;
  readonly endOfFile: boolean;
  readonly liveness: Liveness;
}): Health {
  if (seen.exited) return 'dead';
  if (seen.endOfFile) return 'exiting';
  if (seen.liveness.name === 'convicted') return 'stuck';
  return seen.liveness.unanswered > 1 ? 'busy' : 'healthy';
}
