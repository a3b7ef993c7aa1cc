/**
 * Which children the runtime reaps itself, which of our processes are still under way, and who
 * reaps the rest. Reaping is a property of the process, not of an object in it, so this state is
 * the module's: two owners would steal from each other.
 */

const owned = new Set<number>();
const serials = new Set<number>();
let lastSerial = 0;
let sweep: (() => void) | null = null;

/** Opens the account of one supervised process: its number in the marker of all its descendants. */
export function openSerial(): number {
  lastSerial += 1;
  serials.add(lastSerial);
  return lastSerial;
}

/** The process has ended: whatever still carries its number has escaped. */
export function closeSerial(serial: number): void {
  serials.delete(serial);
}

export function isOpen(serial: number): boolean {
  return serials.has(serial);
}

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

/** Installs what reaps and kills adopted orphans; null removes it. */
export function setSweeper(sweeper: (() => void) | null): void {
  sweep = sweeper;
}

/** Reaps adopted orphans now and kills those that have escaped. False where nobody does that. */
export function sweepOrphans(): boolean {
  sweep?.();
  return sweep !== null;
}
