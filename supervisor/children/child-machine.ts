import type { RunResult, RunStart } from '../../protocol/frames.ts';
import type { StopCause } from './run.ts';

/**
 * The life of one child process. Pure: child.ts applies the effects. What the supervisor wants of
 * the child (pause, stop) arrives as events; the state says what has been observed.
 */

export type ChildState =
  /** Started; it has not said `ready` yet. */
  | { readonly name: 'spawning' }
  /** Idle and warm: it may be given a run. */
  | { readonly name: 'ready' }
  | { readonly name: 'running' }
  /** It said that it waits at a turn boundary. */
  | { readonly name: 'paused' }
  /** On its way out. `answered`: its result has arrived. `cause`: why it is being stopped. */
  | { readonly name: 'finishing'; readonly answered: boolean; readonly cause: StopCause | null }
  /** The leader is reaped, its pipes are drained and its group is empty or given up on. */
  | { readonly name: 'exited'; readonly answered: boolean; readonly cause: StopCause | null };

export type ChildEvent =
  | { readonly type: 'ready' }
  | { readonly type: 'assign'; readonly start: RunStart }
  | { readonly type: 'paused' }
  | { readonly type: 'resumed' }
  | { readonly type: 'result'; readonly result: RunResult }
  | { readonly type: 'stop'; readonly cause: StopCause }
  | { readonly type: 'leader_exit' }
  | { readonly type: 'ended' };

export type ChildEffect =
  /** Tell the pool that it can be given a run. */
  | 'announce_ready'
  /** Write the run frame. */
  | 'send_start'
  /** Keep the result if it is the first; what comes after a stop only completes the report. */
  | 'keep_result'
  /** Cancel its tool calls and stop its descendants. */
  | 'abort_calls'
  /** End its stdin and give it a bounded time to leave. */
  | 'expect_exit'
  | 'begin_ladder'
  /** Log and count something the protocol does not allow here. */
  | 'note_unexpected'
  /** Report how it ended. Exactly once. */
  | 'settle';

interface ChildRow {
  readonly state: ChildState['name'];
  readonly event: ChildEvent['type'];
  readonly next: ChildState['name'];
  readonly effects: readonly ChildEffect[];
  readonly note: string;
}

const odd: readonly ChildEffect[] = ['note_unexpected'];

/** Total over state and event. */
export const CHILD_TRANSITIONS: readonly ChildRow[] = [
  row('spawning', 'ready', 'ready', ['announce_ready'], 'up is not ready: only the frame says so'),
  row('spawning', 'assign', 'spawning', odd, 'only a ready child is given a run'),
  row('spawning', 'paused', 'spawning', odd, 'there is no run to pause'),
  row('spawning', 'resumed', 'spawning', odd, 'there is no run to resume'),
  row('spawning', 'result', 'spawning', odd, 'there is no run to answer'),
  row('spawning', 'stop', 'finishing', ['begin_ladder'], 'also a child that is not ready leaves no survivor'),
  row('spawning', 'leader_exit', 'finishing', [], 'it died before it was ready'),
  row('spawning', 'ended', 'exited', ['settle'], 'it could not be started'),

  row('ready', 'ready', 'ready', odd, 'said twice'),
  row('ready', 'assign', 'running', ['send_start'], 'in the same tick'),
  row('ready', 'paused', 'ready', odd, 'there is no run to pause'),
  row('ready', 'resumed', 'ready', odd, 'there is no run to resume'),
  row('ready', 'result', 'ready', odd, 'there is no run to answer'),
  row('ready', 'stop', 'finishing', ['begin_ladder'], 'the pool shrinks, or the supervisor leaves'),
  row('ready', 'leader_exit', 'finishing', [], 'a warm child died'),
  row('ready', 'ended', 'exited', ['settle'], 'a warm child died'),

  row('running', 'ready', 'running', odd, 'said twice'),
  row('running', 'assign', 'running', odd, 'one run at a time'),
  row('running', 'paused', 'paused', [], 'at a turn boundary'),
  row('running', 'resumed', 'running', [], 'resumed before the pause took hold'),
  row('running', 'result', 'finishing', ['keep_result', 'abort_calls', 'expect_exit'], 'one result a run'),
  row('running', 'stop', 'finishing', ['abort_calls', 'begin_ladder'], 'the first cause stands'),
  row('running', 'leader_exit', 'finishing', ['abort_calls'], 'its last frames may still be in the pipe'),
  row('running', 'ended', 'exited', ['abort_calls', 'settle'], 'vanished'),

  row('paused', 'ready', 'paused', odd, 'said twice'),
  row('paused', 'assign', 'paused', odd, 'one run at a time'),
  row('paused', 'paused', 'paused', [], 'said twice'),
  row('paused', 'resumed', 'running', [], 'it goes on'),
  row(
    'paused',
    'result',
    'finishing',
    ['keep_result', 'abort_calls', 'expect_exit'],
    'it had one more turn in it',
  ),
  row('paused', 'stop', 'finishing', ['abort_calls', 'begin_ladder'], 'a paused child can be stopped'),
  row('paused', 'leader_exit', 'finishing', ['abort_calls'], 'its last frames may still be in the pipe'),
  row('paused', 'ended', 'exited', ['abort_calls', 'settle'], 'vanished'),

  row('finishing', 'ready', 'finishing', [], 'it was stopped before it was ready'),
  row('finishing', 'assign', 'finishing', odd, 'only a ready child is given a run'),
  row('finishing', 'paused', 'finishing', [], 'too late to matter'),
  row('finishing', 'resumed', 'finishing', [], 'too late to matter'),
  row('finishing', 'result', 'finishing', ['keep_result'], 'a second one is ignored'),
  row('finishing', 'stop', 'finishing', ['begin_ladder'], 'hurries an exit; the first cause stands'),
  row('finishing', 'leader_exit', 'finishing', [], 'its pipes and its group follow'),
  row('finishing', 'ended', 'exited', ['settle'], 'reaped, drained, group empty'),

  row('exited', 'ready', 'exited', [], 'over'),
  row('exited', 'assign', 'exited', odd, 'over'),
  row('exited', 'paused', 'exited', [], 'over'),
  row('exited', 'resumed', 'exited', [], 'over'),
  row('exited', 'result', 'exited', odd, 'over'),
  row('exited', 'stop', 'exited', [], 'over'),
  row('exited', 'leader_exit', 'exited', [], 'over'),
  row('exited', 'ended', 'exited', [], 'settled once'),
];

function row(
  state: ChildState['name'],
  event: ChildEvent['type'],
  next: ChildState['name'],
  effects: readonly ChildEffect[],
  note: string,
): ChildRow {
  return { state, event, next, effects, note };
}

const TABLE = new Map(CHILD_TRANSITIONS.map((entry) => [`${entry.state} ${entry.event}`, entry]));

export const CHILD_START: ChildState = { name: 'spawning' };

export function childStep(
  state: ChildState,
  event: ChildEvent,
): { readonly state: ChildState; readonly effects: readonly ChildEffect[] } {
  const entry = TABLE.get(`${state.name} ${event.type}`);
  if (entry === undefined) throw new Error(`child machine: no row for ${state.name} × ${event.type}`);
  const before = 'answered' in state ? state : { answered: false, cause: null };
  switch (entry.next) {
    case 'finishing':
    case 'exited': {
      const answered = before.answered || (event.type === 'result' && state.name !== 'exited');
      // Once it has answered, or once it has gone, a stop explains nothing any more.
      const explains = event.type === 'stop' && state.name !== 'finishing' && state.name !== 'exited';
      const cause = explains ? event.cause : before.cause;
      return { state: { name: entry.next, answered, cause }, effects: entry.effects };
    }
    default:
      return { state: { name: entry.next }, effects: entry.effects };
  }
}
