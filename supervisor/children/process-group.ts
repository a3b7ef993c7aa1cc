import { isRecycled, type ProcessIdentity, readStat, runnableMembers } from './proc.ts';
import { sweepOrphans } from './reaping-domain.ts';

/**
 * A process group led by one of our children. It is gone when signalling it says so, and once it is
 * gone it is never signalled again: its number may belong to somebody else by then.
 */
export class ProcessGroup {
  private gone = false;

  constructor(readonly leader: ProcessIdentity) {}

  /**
   * Whether anything that can still run is in the group. A group's number cannot be given to a new
   * process while the group has members, so a recycled leader pid proves the group empty.
   */
  isEmpty(): boolean {
    if (this.gone) return true;
    if (isRecycled(this.leader) || !this.answers()) return this.conclude();
    // Adopted zombies keep a group signallable until they are reaped.
    sweepOrphans();
    if (!this.answers()) return this.conclude();
    // Where nobody reaps (no /proc list, no waitpid): zombies run nothing, so they count as gone.
    if (readStat(process.pid) !== null && runnableMembers(this.leader.pid).length === 0) {
      return this.conclude();
    }
    return false;
  }

  /** Sends a signal to every member. False when there was none. */
  signal(signal: NodeJS.Signals): boolean {
    if (this.gone) return false;
    if (isRecycled(this.leader)) return !this.conclude();
    try {
      process.kill(-this.leader.pid, signal);
      return true;
    } catch (error) {
      if (isCode(error, 'ESRCH')) this.conclude();
      return false;
    }
  }

  /** Pids and states of what is left, for reports. */
  members(): readonly { readonly pid: number; readonly state: string }[] {
    return this.gone ? [] : runnableMembers(this.leader.pid);
  }

  private answers(): boolean {
    try {
      process.kill(-this.leader.pid, 0);
      return true;
    } catch (error) {
      // EPERM: there is a member, though not one we may signal.
      return !isCode(error, 'ESRCH');
    }
  }

  private conclude(): true {
    this.gone = true;
    return true;
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
