/**
 * What the service manager is told and when, as a machine: starting → ready → stopping, one way, with a
 * reload as a detour of `ready`. It is looked at on every wake of the reactor, so a reactor that does
 * not wake feeds no watchdog, whatever its children do.
 */

/** How things stand, as far as `systemctl status` shows it. */
export interface ServiceFacts {
  readonly phase: 'starting' | 'running' | 'draining';
  /** Why it is not ready, in words; empty when it is, and while it starts or drains. */
  readonly unready: readonly string[];
  readonly paused: boolean;
  /** Children at work. */
  readonly running: number;
  /** Events that wait for one. */
  readonly backlog: number;
  /** What is left of the drain budget, ms; null before a drain. */
  readonly drainLeftMs: number | null;
}

export type NotifyEvent =
  /** The reactor has woken, or its readiness has changed. */
  | { readonly type: 'look'; readonly facts: ServiceFacts }
  | { readonly type: 'reload.begin' }
  | { readonly type: 'reload.end'; readonly facts: ServiceFacts };

export interface NotifyState {
  readonly told: 'starting' | 'ready' | 'reloading' | 'stopping';
  /** The status line last sent. */
  readonly status: string;
  /** When the watchdog was last fed, monotonic ms. */
  readonly fedAt: number;
  /** When the stop was last extended, monotonic ms. */
  readonly extendedAt: number;
}

export type NotifyEffect =
  | { readonly type: 'ready'; readonly status: string }
  | { readonly type: 'status'; readonly status: string }
  | { readonly type: 'stopping'; readonly status: string }
  | { readonly type: 'reloading' }
  | { readonly type: 'extend'; readonly ms: number }
  | { readonly type: 'watchdog' };

export interface NotifyDecision {
  readonly state: NotifyState;
  readonly effects: readonly NotifyEffect[];
}

export const NOTIFY_START: NotifyState = {
  told: 'starting',
  status: '',
  fedAt: Number.NEGATIVE_INFINITY,
  extendedAt: Number.NEGATIVE_INFINITY,
};

/**
 * What one extension of the stop is good for, ms. Short, and repeated on each look: a supervisor that
 * wedges in the middle of its drain is killed this long after its last sign of life.
 */
export const EXTEND_MS = 10_000;
/** Between two extensions, ms. */
const EXTEND_EVERY_MS = 1_000;
/** The last step of a drain may end this long after its budget: forced kills, closing, flushing. */
const AFTER_DRAIN_MS = 5_000;

/**
 * One step of the machine. Total: an event that means nothing in a state changes nothing.
 *
 * @param watchdogMs how often the manager expects a sign of life, ms; null: not at all
 */
export function stepNotify(
  state: NotifyState,
  event: NotifyEvent,
  now: number,
  watchdogMs: number | null,
): NotifyDecision {
  switch (event.type) {
    case 'reload.begin':
      return state.told === 'ready'
        ? { state: { ...state, told: 'reloading' }, effects: [{ type: 'reloading' }] }
        : { state, effects: [] };
    case 'reload.end': {
      if (state.told !== 'reloading') return { state, effects: [] };
      const status = statusLine(event.facts);
      return { state: { ...state, told: 'ready', status }, effects: [{ type: 'ready', status }] };
    }
    case 'look': {
      const fed = feed(state, now, watchdogMs);
      const told = tell(fed.state, event.facts);
      const extended = extend(told.state, event.facts, now);
      return { state: extended.state, effects: [...told.effects, ...extended.effects, ...fed.effects] };
    }
  }
}

/** Four times as often as expected: a machine under load may be late. */
function feed(state: NotifyState, now: number, watchdogMs: number | null): NotifyDecision {
  if (watchdogMs === null || now - state.fedAt < watchdogMs / 4) return { state, effects: [] };
  return { state: { ...state, fedAt: now }, effects: [{ type: 'watchdog' }] };
}

function tell(state: NotifyState, facts: ServiceFacts): NotifyDecision {
  const status = statusLine(facts);
  if (facts.phase === 'draining' && state.told !== 'stopping') {
    return { state: { ...state, told: 'stopping', status }, effects: [{ type: 'stopping', status }] };
  }
  if (facts.phase === 'running' && state.told === 'starting') {
    return { state: { ...state, told: 'ready', status }, effects: [{ type: 'ready', status }] };
  }
  if (status === state.status) return { state, effects: [] };
  return { state: { ...state, status }, effects: [{ type: 'status', status }] };
}

function extend(state: NotifyState, { drainLeftMs }: ServiceFacts, now: number): NotifyDecision {
  if (state.told !== 'stopping' || drainLeftMs === null || now - state.extendedAt < EXTEND_EVERY_MS) {
    return { state, effects: [] };
  }
  const ms = Math.min(EXTEND_MS, drainLeftMs + AFTER_DRAIN_MS);
  return { state: { ...state, extendedAt: now }, effects: [{ type: 'extend', ms }] };
}

/** One line for people: `ready, 3 running, backlog 12`. */
export function statusLine(facts: ServiceFacts): string {
  const work = `${facts.running} running, backlog ${facts.backlog}`;
  switch (facts.phase) {
    case 'starting':
      return 'starting: connecting to its servers';
    case 'running': {
      const ready = facts.unready.length === 0 ? 'ready' : `not ready (${facts.unready.join(', ')})`;
      return `${ready}${facts.paused ? ', paused' : ''}, ${work}`;
    }
    case 'draining': {
      const left = facts.drainLeftMs;
      const budget = left === null ? '' : `, at most ${Math.ceil(left / 1_000)} s left`;
      return `draining, ${work}${budget}`;
    }
  }
}

/** The machine as a table, for docs/states.md. Anything not listed changes nothing. */
export const TRANSITIONS = [
  { state: 'starting', event: 'look', next: 'ready', effects: 'ready', note: 'the phase is running' },
  { state: 'starting', event: 'look', next: 'stopping', effects: 'stopping', note: 'ended while starting' },
  { state: 'ready', event: 'look', next: 'stopping', effects: 'stopping, extend', note: 'draining' },
  { state: 'ready', event: 'look', next: 'ready', effects: 'status, watchdog', note: 'as they become due' },
  { state: 'ready', event: 'reload.begin', next: 'reloading', effects: 'reloading', note: '' },
  { state: 'reloading', event: 'reload.end', next: 'ready', effects: 'ready', note: '' },
  { state: 'reloading', event: 'look', next: 'stopping', effects: 'stopping, extend', note: 'draining' },
  {
    state: 'stopping',
    event: 'look',
    next: 'stopping',
    effects: 'status, extend, watchdog',
    note: 'each extension is good for 10 s',
  },
] as const;
