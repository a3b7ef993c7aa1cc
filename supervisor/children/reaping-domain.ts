/**
 * Which children the runtime reaps itself, and who reaps the others. Reaping is a property of the
 * process, not of an object in it, so this state is the module's: two owners would steal from each
 * other.
 */

const owned = new Set<number>();
let reaper: (() => void) | null = null;

/** The runtime will wait for this pid: nobody else may. */
export function own(pid: number): void {
  owned.add(pid);
}

/** The runtime has reaped it; the number may come back as somebody else's. */
export function disown(pid: number): void {
  owned.delete(pid);
}

export function isOwned(pid: number): boolean {
  return owned.has(pid);
}

/** Installs what reaps adopted orphans; null removes it. */
export function setReaper(reap: (() => void) | null): void {
  reaper = reap;
}

/** Reaps adopted orphans now, where that is possible. */
export function reapOrphans(): void {
  reaper?.();
}
