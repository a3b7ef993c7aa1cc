import pidusage from 'pidusage';

/** What one process was last seen to use. */
export interface Usage {
  readonly rssBytes: number;
  /** Per cent of one core since the sample before. */
  readonly cpuPercent: number;
}

/** How long the library keeps a descriptor on a process it is no longer asked about, ms. */
const MAX_AGE_MS = 10_000;

/** Samples CPU and memory of many processes in one batch. Losing a sample changes nothing. */
export class UsageSampler {
  private latest = new Map<number, Usage>();
  private sampling = false;

  /** The last sample of a process; null when there is none. */
  of(pid: number): Usage | null {
    return this.latest.get(pid) ?? null;
  }

  /** Samples these processes and forgets all others. One batch at a time: a slow one is not piled upon. */
  async sample(pids: readonly number[]): Promise<ReadonlyMap<number, Usage>> {
    if (this.sampling || pids.length === 0) return new Map();
    this.sampling = true;
    try {
      const stats = await pidusage([...pids], { maxage: MAX_AGE_MS });
      this.latest = new Map(
        Object.values(stats)
          // A process that has gone meanwhile has no figures.
          .filter((stat) => stat !== null && stat !== undefined)
          .map((stat) => [stat.pid, { rssBytes: stat.memory, cpuPercent: stat.cpu }]),
      );
    } catch {
      this.latest = new Map();
    } finally {
      this.sampling = false;
    }
    return this.latest;
  }
}
