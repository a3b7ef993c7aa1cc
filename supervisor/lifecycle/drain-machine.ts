/**
 * A drain, as a one-way machine (invariant 4): running → draining{step} → exiting. The budget
 * covers everything, and every step has a share of it, so that nothing waits without a deadline.
 */

export const DRAIN_STEPS = ['disarm', 'release_offers', 'stop_children', 'release_leases', 'flush'] as const;
export type DrainStep = (typeof DRAIN_STEPS)[number];

export type DrainState =
  | { readonly phase: 'running' }
  | {
      readonly phase: 'draining';
      readonly step: DrainStep;
      readonly cause: string;
      /** Monotonic ms. */
      readonly startedAt: number;
      readonly deadline: number;
    }
  | { readonly phase: 'exiting'; readonly forced: boolean };

export type DrainEvent =
  /** SIGTERM or SIGINT. */
  | { readonly type: 'signal'; readonly signal: string }
  /** The work is over, or an operator asked; `budgetMs` replaces the configured budget. */
  | { readonly type: 'request'; readonly cause: string; readonly budgetMs?: number }
  | { readonly type: 'step_done'; readonly step: DrainStep };

export type DrainEffect =
  | { readonly type: 'started'; readonly cause: string }
  /** Do this step; report `step_done` within `budgetMs`. */
  | { readonly type: 'enter'; readonly step: DrainStep; readonly budgetMs: number }
  /** A second signal: SIGKILL every group and end by SIGTERM. */
  | { readonly type: 'force' }
  | { readonly type: 'exit' };

export interface DrainDecision {
  readonly state: DrainState;
  readonly effects: readonly DrainEffect[];
}

/**
 * Signals closer together than this are one request: a terminal and a parent that forwards it both
 * deliver the same Ctrl-C.
 */
export const SAME_REQUEST_MS = 100;
/** Kept back for the last log lines and for closing connections. */
const FLUSH_MS = 500;

/** The share of the drain budget that giving leases back may take: min(2 s, a quarter). */
export function releaseBudget(drainTimeoutMs: number): number {
  return Math.min(2_000, drainTimeoutMs / 4);
}

/** One step of the machine. Total: an event that means nothing in a state changes nothing. */
export function stepDrain(
  state: DrainState,
  event: DrainEvent,
  now: number,
  drainTimeoutMs: number,
): DrainDecision {
  switch (state.phase) {
    case 'running': {
      if (event.type === 'step_done') return { state, effects: [] };
      const cause = event.type === 'signal' ? event.signal : event.cause;
      const budgetMs = (event.type === 'request' ? event.budgetMs : undefined) ?? drainTimeoutMs;
      return {
        state: { phase: 'draining', step: 'disarm', cause, startedAt: now, deadline: now + budgetMs },
        effects: [
          { type: 'started', cause },
          { type: 'enter', step: 'disarm', budgetMs },
        ],
      };
    }
    case 'draining': {
      if (event.type === 'signal') {
        if (now - state.startedAt < SAME_REQUEST_MS) return { state, effects: [] };
        return { state: { phase: 'exiting', forced: true }, effects: [{ type: 'force' }] };
      }
      if (event.type !== 'step_done' || event.step !== state.step) return { state, effects: [] };
      const next = DRAIN_STEPS[DRAIN_STEPS.indexOf(state.step) + 1];
      if (next === undefined)
        return { state: { phase: 'exiting', forced: false }, effects: [{ type: 'exit' }] };
      return {
        state: { ...state, step: next },
        effects: [{ type: 'enter', step: next, budgetMs: shareOf(next, state, now) }],
      };
    }
    case 'exiting':
      return { state, effects: [] };
  }
}

/** What a step may take of the time that is left, ms. */
function shareOf(step: DrainStep, drain: { startedAt: number; deadline: number }, now: number): number {
  const left = Math.max(0, drain.deadline - now);
  const whole = drain.deadline - drain.startedAt;
  const forRelease = releaseBudget(whole);
  const forFlush = Math.min(FLUSH_MS, whole / 10);
  switch (step) {
    case 'disarm':
    case 'flush':
      return left;
    case 'release_offers':
      return Math.min(forRelease, left);
    case 'stop_children':
      return Math.max(0, left - forRelease - forFlush);
    case 'release_leases':
      return Math.max(0, Math.min(forRelease, left - forFlush));
  }
}

/** The machine as a table, for docs/states.md. Anything not listed changes nothing. */
export const TRANSITIONS = [
  { state: 'running', event: 'signal', next: 'draining', effects: 'started, enter disarm', note: '' },
  {
    state: 'running',
    event: 'request',
    next: 'draining',
    effects: 'started, enter disarm',
    note: 'the work is over, or an operator asked',
  },
  {
    state: 'draining',
    event: 'step_done',
    next: 'draining',
    effects: 'enter the next step',
    note: 'disarm, release_offers, stop_children, release_leases, flush',
  },
  { state: 'draining', event: 'step_done', next: 'exiting', effects: 'exit', note: 'after flush' },
  {
    state: 'draining',
    event: 'signal',
    next: 'draining',
    effects: '',
    note: 'within 100 ms of the first: the same request',
  },
  {
    state: 'draining',
    event: 'signal',
    next: 'exiting',
    effects: 'force',
    note: 'kills every group, ends by SIGTERM (143)',
  },
] as const;
