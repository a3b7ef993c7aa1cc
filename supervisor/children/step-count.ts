import type { Metrics } from '../telemetry/metrics.ts';

/** Adds up the steps children report, over the whole tree: they report running totals. */
export class StepCount {
  private readonly seen = new Map<string, number>();

  constructor(private readonly metrics: Metrics) {}

  take(runId: string, steps: number): void {
    const before = this.seen.get(runId) ?? 0;
    if (steps <= before) return;
    this.metrics.add('agent_loop_steps_total', {}, steps - before);
    this.seen.set(runId, steps);
  }

  /** The run is over: takes in the steps it reported last. */
  finish(runId: string, steps: number): void {
    this.take(runId, steps);
    this.seen.delete(runId);
  }
}
