/**
 * The heartbeat: one counter in shared memory that the reactor's thread moves on every wake and the
 * health thread watches. A wedged reactor cannot answer a probe, but it also cannot hide.
 */
export class Heartbeat {
  private readonly counter: Int32Array;

  constructor(readonly buffer: SharedArrayBuffer = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)) {
    this.counter = new Int32Array(buffer);
  }

  /** Called on every wake of the reactor, idle ticks included. Wraps around. */
  beat(): void {
    Atomics.add(this.counter, 0, 1);
  }

  read(): number {
    return Atomics.load(this.counter, 0);
  }
}

export interface HeartbeatVerdict {
  readonly stale: boolean;
  /** Time since the last beat as the watcher saw it, ms. */
  readonly ageMs: number;
  /** True once, at the first look after a stall has ended. */
  readonly recovered: boolean;
}

/**
 * Judges the heartbeat from the watcher's side with the watcher's own monotonic clock. A gap in the
 * looks themselves (the process was stopped, the machine slept) is nobody's stall and is left out.
 */
export class HeartbeatWatch {
  private lastCount: number;
  private lastBeatAt: number;
  private lastLookAt: number;
  private stalled = false;

  /**
   * @param staleMs a heartbeat older than this is stale, ms
   * @param maxGapMs looks further apart than this mean that the watcher was stopped itself, ms
   */
  constructor(
    private readonly staleMs: number,
    private readonly maxGapMs: number,
    count: number,
    now: number,
  ) {
    this.lastCount = count;
    this.lastBeatAt = now;
    this.lastLookAt = now;
  }

  look(count: number, now: number): HeartbeatVerdict {
    const gap = now - this.lastLookAt;
    this.lastLookAt = now;
    if (count !== this.lastCount) {
      this.lastCount = count;
      this.lastBeatAt = now;
    } else if (gap > this.maxGapMs) {
      this.lastBeatAt += gap;
    }
    const ageMs = now - this.lastBeatAt;
    const stale = ageMs > this.staleMs;
    const recovered = this.stalled && !stale;
    this.stalled = stale;
    return { stale, ageMs, recovered };
  }
}
