import type { Scheduler } from './scheduler.ts';

/** Starts in a row that fail before the supervisor's breaker opens. */
const THRESHOLD = 2;
const PROBE_MS = 250;

/** The machine of one supervisor: whether it can start children, and whether that is known by now. */
export class Machine {
  /** What the supervisor believes. */
  canStart = true;
  private brokenUntil = 0;
  private failures = 0;

  /** @param recovered the supervisor has learnt that children can be started again */
  constructor(
    private readonly scheduler: Scheduler,
    private readonly recovered: () => void,
  ) {}

  /** From here on no child comes up, for so long. */
  break(ms: number): void {
    this.brokenUntil = Math.max(this.brokenUntil, this.scheduler.now + ms);
  }

  /** Starts a child; false when it does not come up. */
  start(): boolean {
    const comesUp = this.scheduler.now >= this.brokenUntil;
    this.failures = comesUp ? 0 : this.failures + 1;
    if (this.failures >= THRESHOLD && this.canStart) {
      this.canStart = false;
      this.probeLater();
    }
    return comesUp;
  }

  private probeLater(): void {
    this.scheduler.schedule(this.scheduler.now + PROBE_MS, () => {
      if (!this.start()) {
        this.probeLater();
        return;
      }
      this.canStart = true;
      this.recovered();
    });
  }
}
