import type { Liveness } from './liveness.ts';

interface LivenessRow {
  readonly state: Liveness['name'];
  /** The event, with the guard that tells its rows apart. Progress and answers change no state. */
  readonly event: string;
  readonly next: Liveness['name'];
  readonly effects: readonly string[];
  readonly note: string;
}

/** For the documentation and its test. */
export const LIVENESS_TRANSITIONS: readonly LivenessRow[] = [
  row('idle', 'assigned', 'watching', [], 'a run or a turn begins: the deadline runs'),
  row('idle', 'rested', 'idle', [], 'known'),
  row('idle', 'paused', 'idle', [], 'there is nothing to pause'),
  row('idle', 'resumed', 'idle', [], 'there is nothing to resume'),
  row('idle', 'tick', 'idle', ['ping'], 'a warm child owes nothing but answers'),
  row('idle', 'tick late', 'idle', [], 'fresh windows'),
  row('idle', 'tick unanswered', 'convicted', ['verdict wedged'], 'three pings without an answer'),
  row('watching', 'assigned', 'watching', [], 'the next turn of a session'),
  row('watching', 'rested', 'idle', [], 'the turn of a session is over'),
  row('watching', 'paused', 'paused', [], 'a paused run makes no progress'),
  row('watching', 'resumed', 'watching', [], 'known'),
  row('watching', 'tick', 'watching', ['ping'], 'every ping interval'),
  row('watching', 'tick late', 'watching', [], 'nobody is blamed for time in which nobody could run'),
  row('watching', 'tick silent', 'convicted', ['verdict no_progress'], 'pongs alone are no progress'),
  row('watching', 'tick silent in a call', 'watching', ['ping'], 'the call has a limit of its own'),
  row('watching', 'tick unanswered', 'convicted', ['verdict wedged'], 'its event loop no longer turns'),
  row('watching', 'tick at the deadline', 'convicted', ['verdict deadline'], 'always finite'),
  row('paused', 'assigned', 'watching', [], 'the next turn of a session'),
  row('paused', 'rested', 'idle', [], 'the turn of a session is over'),
  row('paused', 'paused', 'paused', [], 'known'),
  row('paused', 'resumed', 'watching', [], 'a fresh window'),
  row('paused', 'tick', 'paused', ['ping'], 'it still has to answer'),
  row('paused', 'tick late', 'paused', [], 'fresh windows'),
  row('paused', 'tick silent', 'paused', ['ping'], 'a paused run makes no progress'),
  row('paused', 'tick unanswered', 'convicted', ['verdict wedged'], 'three pings without an answer'),
  row(
    'paused',
    'tick at the deadline',
    'convicted',
    ['verdict deadline'],
    'the deadline is wall-clock: a pause does not stop it',
  ),
  row('convicted', 'assigned', 'convicted', [], 'one verdict is enough'),
  row('convicted', 'rested', 'convicted', [], 'one verdict is enough'),
  row('convicted', 'paused', 'convicted', [], 'one verdict is enough'),
  row('convicted', 'resumed', 'convicted', [], 'one verdict is enough'),
  row('convicted', 'tick', 'convicted', [], 'one verdict is enough'),
  row('convicted', 'tick late', 'convicted', [], 'one verdict is enough'),
  row('convicted', 'tick silent', 'convicted', [], 'one verdict is enough'),
  row('convicted', 'tick silent in a call', 'convicted', [], 'one verdict is enough'),
  row('convicted', 'tick unanswered', 'convicted', [], 'one verdict is enough'),
  row('convicted', 'tick at the deadline', 'convicted', [], 'one verdict is enough'),
];

function row(
  state: Liveness['name'],
  event: string,
  next: Liveness['name'],
  effects: readonly string[],
  note: string,
): LivenessRow {
  return { state, event, next, effects, note };
}
