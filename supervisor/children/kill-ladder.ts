/**
 * The kill ladder: ask, SIGTERM the group, SIGKILL the group, and prove that it is empty. Pure; the
 * runner in supervised-process.ts applies the effects. Every rung is bounded, so the whole is.
 */

export type LadderState =
  | { readonly name: 'idle' }
  /** Asked to leave by itself. */
  | { readonly name: 'cancelling' }
  /** SIGTERM went to the group. */
  | { readonly name: 'terminating' }
  /** SIGKILL went to the group. */
  | { readonly name: 'killing' }
  /** The group is empty; `rung` is the last one that was needed. */
  | { readonly name: 'gone'; readonly rung: Rung }
  /** SIGKILL did not empty the group in time: uninterruptible sleep, or not ours to signal. */
  | { readonly name: 'abandoned' };

export type Rung = 'none' | 'cancel' | 'term' | 'kill';

export type LadderEvent =
  /** Stop, from the rung of that name on. */
  | 'ask'
  | 'terminate'
  | 'kill'
  /** The grace of the present rung is over. */
  | 'timeout'
  /** The leader is gone while its group is not empty. */
  | 'leader_exited'
  | 'group_empty';

export type LadderEffect =
  | 'send_cancel'
  | 'signal_term'
  | 'signal_kill'
  | 'arm_timer'
  | 'report_unkillable'
  | 'done';

interface LadderRow {
  readonly state: LadderState['name'];
  readonly event: LadderEvent;
  readonly next: LadderState['name'];
  readonly effects: readonly LadderEffect[];
  readonly note: string;
}

const TERM: readonly LadderEffect[] = ['signal_term', 'arm_timer'];
const KILL: readonly LadderEffect[] = ['signal_kill', 'arm_timer'];

/** Total over state and event. */
export const LADDER_TRANSITIONS = [
  row('idle', 'ask', 'cancelling', ['send_cancel', 'arm_timer'], 'first the process is asked'),
  row('idle', 'terminate', 'terminating', TERM, 'asking is pointless: it does not listen'),
  row('idle', 'kill', 'killing', KILL, 'no time left for manners'),
  row('idle', 'timeout', 'idle', [], 'nothing was asked'),
  row(
    'idle',
    'leader_exited',
    'killing',
    KILL,
    'it left by itself; what it left behind has no work to finish',
  ),
  row('idle', 'group_empty', 'gone', ['done'], 'it left by itself'),

  row('cancelling', 'ask', 'cancelling', [], 'already asked; the first cause stands'),
  row('cancelling', 'terminate', 'terminating', TERM, 'hurried'),
  row('cancelling', 'kill', 'killing', KILL, 'hurried'),
  row('cancelling', 'timeout', 'terminating', TERM, 'it ignored the request'),
  row(
    'cancelling',
    'leader_exited',
    'terminating',
    TERM,
    'the leader complied, its descendants have not heard yet',
  ),
  row('cancelling', 'group_empty', 'gone', ['done'], 'it complied'),

  row('terminating', 'ask', 'terminating', [], 'past that rung'),
  row('terminating', 'terminate', 'terminating', [], 'already done'),
  row('terminating', 'kill', 'killing', KILL, 'hurried'),
  row('terminating', 'timeout', 'killing', KILL, 'somebody in the group ignores SIGTERM'),
  row(
    'terminating',
    'leader_exited',
    'terminating',
    [],
    'the rest keeps its grace: a signal sent is not a process dead',
  ),
  row('terminating', 'group_empty', 'gone', ['done'], 'SIGTERM was enough'),

  row('killing', 'ask', 'killing', [], 'past that rung'),
  row('killing', 'terminate', 'killing', [], 'past that rung'),
  row('killing', 'kill', 'killing', KILL, 'again: a member may have been forked meanwhile'),
  row('killing', 'timeout', 'abandoned', ['report_unkillable', 'done'], 'bounded: nothing waits for ever'),
  row('killing', 'leader_exited', 'killing', KILL, 'what was forked between the signal and the exit'),
  row('killing', 'group_empty', 'gone', ['done'], 'SIGKILL was needed'),

  row('gone', 'ask', 'gone', [], 'an empty group is never signalled'),
  row('gone', 'terminate', 'gone', [], 'an empty group is never signalled'),
  row('gone', 'kill', 'gone', [], 'an empty group is never signalled'),
  row('gone', 'timeout', 'gone', [], 'a timer that lost the race'),
  row('gone', 'leader_exited', 'gone', [], 'known'),
  row('gone', 'group_empty', 'gone', [], 'known'),

  row('abandoned', 'ask', 'abandoned', [], 'asked and killed already'),
  row('abandoned', 'terminate', 'abandoned', [], 'past that rung'),
  row('abandoned', 'kill', 'killing', KILL, 'one more try on demand'),
  row('abandoned', 'timeout', 'abandoned', [], 'no timer is armed'),
  row('abandoned', 'leader_exited', 'abandoned', [], 'its group is still not empty'),
  row('abandoned', 'group_empty', 'gone', ['done'], 'it went after all'),
] as const satisfies readonly LadderRow[];

function row(
  state: LadderState['name'],
  event: LadderEvent,
  next: LadderState['name'],
  effects: readonly LadderEffect[],
  note: string,
): LadderRow {
  return { state, event, next, effects, note };
}

const TABLE = new Map<string, LadderRow>(
  LADDER_TRANSITIONS.map((entry) => [`${entry.state} ${entry.event}`, entry]),
);

const RUNG_OF: Readonly<Record<LadderState['name'], Rung>> = {
  idle: 'none',
  cancelling: 'cancel',
  terminating: 'term',
  killing: 'kill',
  gone: 'none',
  abandoned: 'kill',
};

export const LADDER_START: LadderState = { name: 'idle' };

/** The last rung that was needed so far. */
export function rungOf(state: LadderState): Rung {
  return state.name === 'gone' ? state.rung : RUNG_OF[state.name];
}

export function ladderStep(
  state: LadderState,
  event: LadderEvent,
): { readonly state: LadderState; readonly effects: readonly LadderEffect[] } {
  const entry = TABLE.get(`${state.name} ${event}`);
  if (entry === undefined) throw new Error(`kill ladder: no row for ${state.name} × ${event}`);
  const next: LadderState =
    entry.next === 'gone' ? { name: 'gone', rung: rungOf(state) } : { name: entry.next };
  return { state: next, effects: entry.effects };
}

/** Milliseconds each rung may take. */
export interface LadderTimings {
  /** From the request to SIGTERM. */
  readonly cancelGraceMs: number;
  /** From SIGTERM to SIGKILL. */
  readonly termGraceMs: number;
  /** From SIGKILL to giving up. */
  readonly killWaitMs: number;
}

export const DEFAULT_LADDER_TIMINGS: LadderTimings = {
  cancelGraceMs: 5_000,
  termGraceMs: 2_000,
  killWaitMs: 5_000,
};

/** How long the present rung lasts; null where nothing is awaited. */
export function graceOf(state: LadderState, timings: LadderTimings): number | null {
  switch (state.name) {
    case 'cancelling':
      return timings.cancelGraceMs;
    case 'terminating':
      return timings.termGraceMs;
    case 'killing':
      return timings.killWaitMs;
    default:
      return null;
  }
}
