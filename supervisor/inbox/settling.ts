import { type FileState, sameState } from './folder-scan.ts';

/**
 * When a changed file may be announced: once it has stayed the same for a while. Somebody who
 * writes in place would otherwise be read half-written; somebody who renames into place pays only
 * the quiet time. Durations in ms.
 */
export interface SettleTimes {
  /** Quiet time before a change counts. */
  readonly quietMs: number;
  /** Quiet time of a file that is new and empty: its content is probably still to come. */
  readonly emptyQuietMs: number;
  /** A known file that never comes to rest (a log) is announced this often all the same. */
  readonly maxWaitMs: number;
  /** A new file that never comes to rest is announced after this long. */
  readonly maxNewWaitMs: number;
}

export const SETTLE_TIMES: SettleTimes = {
  quietMs: 50,
  emptyQuietMs: 1000,
  maxWaitMs: 2000,
  maxNewWaitMs: 60_000,
};

interface Unsettled {
  /** Undefined before the first look, null when there was no document. */
  seen: FileState | null | undefined;
  readonly since: number;
  quietSince: number;
}

/** Paths that changed and are not announced yet. Time is given to each call: ms, monotonic. */
export class Settling {
  private readonly paths = new Map<string, Unsettled>();

  /** @param isKnown whether a path has been announced as a document before */
  constructor(
    private readonly times: SettleTimes,
    private readonly isKnown: (path: string) => boolean,
  ) {}

  get size(): number {
    return this.paths.size;
  }

  /**
   * Something happened to a path. With `seen`, that state was found without an event that would
   * tell of later writes, so it must be found a second time.
   */
  touch(path: string, now: number, seen?: FileState | null): void {
    const entry = this.paths.get(path);
    if (entry === undefined) this.paths.set(path, { seen, since: now, quietSince: now });
    else if (seen === undefined || !sameState(entry.seen, seen)) {
      entry.quietSince = now;
      entry.seen = seen;
    }
  }

  /** Paths to be looked at now. */
  due(now: number): string[] {
    const due: string[] = [];
    for (const [path, entry] of this.paths) {
      const empty = entry.seen?.size === 0 && !this.isKnown(path);
      const quietMs = empty ? this.times.emptyQuietMs : this.times.quietMs;
      if (now - entry.quietSince >= quietMs || this.isOverdue(path, entry, now)) due.push(path);
    }
    return due;
  }

  /** Whether what a look at a due path found is settled; if so the path is forgotten here. */
  settle(path: string, state: FileState | null, now: number): boolean {
    const entry = this.paths.get(path);
    if (entry === undefined) return false;
    const promising = state?.size === 0 && !this.isKnown(path);
    const stable = entry.seen === undefined ? !promising : sameState(entry.seen, state);
    if (stable || this.isOverdue(path, entry, now)) {
      this.paths.delete(path);
      return true;
    }
    entry.seen = state;
    entry.quietSince = now;
    return false;
  }

  /** Forgets a path: it turned out to be no document. */
  drop(path: string): void {
    this.paths.delete(path);
  }

  private isOverdue(path: string, entry: Unsettled, now: number): boolean {
    return now - entry.since >= (this.isKnown(path) ? this.times.maxWaitMs : this.times.maxNewWaitMs);
  }
}
