import type { RunEnd } from './agent-run.ts';
import { readStat } from './proc.ts';
import type { StopCause } from './run.ts';
import type { ProcessEnd, SupervisedProcess } from './supervised-process.ts';

const WORDS: Readonly<Record<StopCause, { readonly type: string; readonly message: string }>> = {
  cancelled: { type: 'Cancelled', message: 'the run was cancelled' },
  drain: { type: 'Cancelled', message: 'the supervisor drained before the run had ended' },
  deadline: { type: 'DeadlineExceeded', message: 'the run passed its deadline' },
  no_progress: { type: 'NoProgress', message: 'the child answered pings but made no progress' },
  wedged: { type: 'Wedged', message: 'the child stopped answering pings' },
  memory: { type: 'MemoryExceeded', message: 'the child used more memory than it may' },
  lease_lost: { type: 'LeaseLost', message: 'somebody else owns the item now' },
  lease_expired: { type: 'LeaseExpired', message: 'the lease could not be renewed in time' },
  parent_ended: { type: 'Cancelled', message: 'the agent that asked for it has ended' },
  tree_tokens: { type: 'TreeTokensExceeded', message: 'the tree of agents has spent its tokens' },
  spawn_failed: { type: 'SpawnFailed', message: 'the child could not be started' },
  not_ready: { type: 'NotReady', message: 'the child ended before it was ready' },
  protocol: { type: 'ProtocolError', message: 'the child broke the protocol' },
  vanished: { type: 'ChildVanished', message: 'the child ended without a result' },
  forced: { type: 'Forced', message: 'the supervisor was forced to stop' },
};

/** Causes that begin at SIGTERM: who cannot listen is not asked. */
const FIRM: ReadonlySet<StopCause> = new Set(['wedged', 'memory', 'protocol', 'not_ready', 'spawn_failed']);

/** Causes that say nothing about the child: it was told to go. */
const TOLD: ReadonlySet<StopCause> = new Set(['cancelled', 'drain', 'forced']);

export function wasTold(cause: StopCause | null): boolean {
  return cause !== null && TOLD.has(cause);
}

/** Until SIGTERM for a child that has no run and so nothing to finish, ms. */
const IDLE_GRACE_MS = 1_000;

/** Begins the kill ladder at the rung the cause calls for. */
export function climb(
  process: Pick<SupervisedProcess, 'kill' | 'terminate' | 'stop'>,
  cause: StopCause,
  wasReady: boolean,
  hasRun: boolean,
): void {
  if (cause === 'forced') process.kill(cause);
  else if (FIRM.has(cause) || !wasReady) process.terminate(cause);
  else if (hasRun) process.stop(cause);
  else process.stop(cause, IDLE_GRACE_MS);
}

/**
 * Whether a child should have been ready by now. One that the machine does not let run is late
 * through no fault of its own, and is given as long as the very first one.
 */
export function isOverdue(
  ageMs: number,
  timings: { readonly readyMs: number; readonly firstReadyMs: number },
  first: boolean,
  pid: number | null,
): boolean {
  if (ageMs <= timings.readyMs) return false;
  const state = pid === null ? undefined : readStat(pid)?.state;
  const patient = first || state === 'R' || state === 'D';
  return !patient || ageMs > timings.firstReadyMs;
}

/** Says how a child ended, from what was seen of it. */
export function describeEnd(seen: {
  readonly ended: ProcessEnd;
  /** Why it was stopped; null when it left by itself. */
  readonly cause: StopCause | null;
  /** What exactly was found against it, where a general sentence would not do. */
  readonly fault: string | null;
  readonly wasReady: boolean;
  readonly lastStderr: string | null;
  /** The kernel killed something in its cgroup for want of memory. */
  readonly outOfMemory: boolean;
}): RunEnd {
  const { ended, fault, lastStderr } = seen;
  const { code, signal, rung, spawnError } = ended;
  const exit = spawnError === null ? { code, signal } : null;
  if (spawnError !== null) {
    const error = { type: WORDS.spawn_failed.type, message: spawnError.message };
    return { cause: 'spawn_failed', exit, rung, error };
  }
  const found = seen.outOfMemory ? 'memory' : seen.wasReady ? null : 'not_ready';
  const cause = seen.cause ?? found;
  const words = WORDS[cause ?? 'vanished'];
  const how = signal === null ? `exit code ${code}` : `signal ${signal}`;
  const unasked = seen.cause === null;
  const told = unasked && lastStderr !== null ? `; its last words: ${lastStderr}` : '';
  const message = fault ?? (unasked ? `${words.message} (${how})${told}` : words.message);
  return { cause, exit, rung, error: { type: words.type, message } };
}
