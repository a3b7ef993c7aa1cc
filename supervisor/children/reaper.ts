import { errorMessage } from '../../protocol/errors.ts';
import type { Log } from '../telemetry/log.ts';
import { type KernelCalls, loadKernelCalls } from './kernel-calls.ts';
import { childrenOfSelf, type ProcessStat, readCommand, readEnvironment, readStat } from './proc.ts';
import { isOpen, isOwned, setSweeper } from './reaping-domain.ts';
import { isOwn, parseSupervisionId, SUPERVISION_VARIABLE, supervisorIsGone } from './supervision-id.ts';

/** Between two sweeps when nothing happens, and the first wait while an orphan is dying, ms. */
const SWEEP_MS = 1_000;
const SOON_MS = 5;

export interface Reaper {
  /** Orphans killed so far. */
  readonly killed: number;
  /** Zombies reaped so far. */
  readonly reaped: number;
  stop(): void;
}

/**
 * Makes this process the reaper of all its descendants: orphans are adopted here (as PID 1 they are
 * anyway), reaped when they die, and killed when the child they descend from has ended.
 *
 * Never waits for "any child": that would steal the exits of the runtime's own children. A child is
 * waited for by pid, and only if the runtime does not own it.
 *
 * @returns null where the platform or the foreign-function library cannot do it; then escapees are
 *   found by their marker instead, and as PID 1 zombies stay
 */
export async function startReaper(log: Log): Promise<Reaper | null> {
  if (process.platform !== 'linux' || readStat(process.pid) === null) return null;
  let calls: KernelCalls;
  try {
    calls = await loadKernelCalls();
    calls.becomeSubreaper();
  } catch (error) {
    log.debug('subagent.orphan', { msg: `orphans are not adopted: ${errorMessage(error)}` });
    return null;
  }
  return new OrphanReaper(calls, log);
}

class OrphanReaper implements Reaper {
  killed = 0;
  reaped = 0;
  private readonly session = readStat(process.pid)?.session ?? -1;
  private readonly interval: NodeJS.Timeout;
  private soon: NodeJS.Timeout | undefined;
  private soonMs = SOON_MS;

  constructor(
    private readonly calls: KernelCalls,
    private readonly log: Log,
  ) {
    setSweeper(() => this.sweep());
    this.interval = setInterval(() => this.sweep(), SWEEP_MS).unref();
  }

  stop(): void {
    clearInterval(this.interval);
    clearTimeout(this.soon);
    setSweeper(null);
  }

  private sweep(): void {
    let dying = 0;
    for (const pid of childrenOfSelf()) {
      if (isOwned(pid)) continue;
      const stat = readStat(pid);
      // In our own session: started by a library of this process, which waits for it itself.
      if (stat === null || stat.session === this.session) continue;
      if (stat.state === 'Z') {
        if (this.calls.reap(pid)) this.reaped += 1;
      } else if (this.hasEscaped(stat) && this.kill(pid)) dying += 1;
    }
    if (dying > 0) this.again();
    else this.soonMs = SOON_MS;
  }

  /** Whether nobody who is still under way answers for it. */
  private hasEscaped(stat: ProcessStat): boolean {
    if (isOwned(stat.group) || isOwned(stat.session)) return false;
    const text = readEnvironment(stat.pid, SUPERVISION_VARIABLE);
    const id = text === null ? null : parseSupervisionId(text);
    if (id !== null) return isOwn(id) ? !isOpen(id.serial) : supervisorIsGone(id);
    // Without our marker it is still our descendant, unless we are the init of a whole namespace
    // and somebody else (an operator's shell) has left it to us.
    return process.pid !== 1;
  }

  private kill(pid: number): boolean {
    const command = readCommand(pid);
    try {
      // It is our unreaped child, so its pid cannot have been recycled.
      process.kill(pid, 'SIGKILL');
    } catch {
      return false;
    }
    this.killed += 1;
    this.log.warn('subagent.orphan', {
      msg: 'killed a process: it outlived its child',
      orphan_pid: pid,
      command,
    });
    return true;
  }

  /** A killed orphan is not dead yet, and its own children come to us only then. */
  private again(): void {
    clearTimeout(this.soon);
    this.soon = setTimeout(() => this.sweep(), this.soonMs).unref();
    this.soonMs = Math.min(this.soonMs * 2, SWEEP_MS);
  }
}
