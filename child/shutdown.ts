/**
 * The ways a child ends. Only main.ts holds the real `exit`.
 *
 * A child leaves as soon as its result is out or its supervisor is gone, and takes with it what it
 * started (invariant 6).
 */

export interface ExitPorts {
  readonly pid: number;
  exit(code: number): void;
  kill(pid: number, signal: 'SIGKILL'): void;
}

/** Longest a result may take to leave through the pipe after SIGTERM, ms. */
export const LAST_WORDS_MS = 1500;

/**
 * Ends this process and its process group at once: the supervisor is gone.
 *
 * Signalling the group by our own pid reaches it only if we lead it; otherwise no such group
 * exists and the signal is refused.
 */
export function leaveWithGroup(ports: ExitPorts): void {
  try {
    ports.kill(-ports.pid, 'SIGKILL');
  } catch {
    // Not the leader of a group: there is nobody to take along.
  }
  ports.exit(1);
}
