/** What this process itself uses, threads included. */
export interface ProcessUsage {
  readonly pid: number;
  /** Per cent of one core, over the last moments before it was asked for. */
  readonly cpu_percent: number;
  readonly rss_bytes: number;
}

/** Where the figures come from. */
export interface UsageProbe {
  /** Monotonic, ms. */
  now(): number;
  /** Processor time spent so far, microseconds. */
  cpuMicros(): number;
  rssBytes(): number;
}

const OWN: UsageProbe = {
  now: () => performance.now(),
  cpuMicros: () => {
    const { user, system } = process.cpuUsage();
    return user + system;
  },
  rssBytes: () => process.memoryUsage.rss(),
};

/** Over a shorter time a share of processor time says nothing, ms. */
const LEAST_WINDOW_MS = 500;

/** Measures between readings, so that nothing runs while nobody asks. Readers side by side share a window. */
export class OwnUsage {
  private from: { readonly at: number; readonly micros: number };
  private percent: number | null = null;

  constructor(private readonly probe: UsageProbe = OWN) {
    this.from = { at: probe.now(), micros: probe.cpuMicros() };
  }

  read(): ProcessUsage {
    const { probe, from } = this;
    const [at, micros] = [probe.now(), probe.cpuMicros()];
    const elapsedMs = at - from.at;
    if (this.percent === null || elapsedMs >= LEAST_WINDOW_MS) {
      this.percent = elapsedMs <= 0 ? 0 : Math.max(0, (micros - from.micros) / (elapsedMs * 10));
      if (elapsedMs >= LEAST_WINDOW_MS) this.from = { at, micros };
    }
    return {
      pid: process.pid,
      cpu_percent: Math.round(this.percent * 10) / 10,
      rss_bytes: probe.rssBytes(),
    };
  }
}
