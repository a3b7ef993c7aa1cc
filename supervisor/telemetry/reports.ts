import type { RunReport } from '../../protocol/run-report.ts';

/** The reports of the latest runs, for `agent://run/{run_id}`. The oldest make room (invariant 8). */
export class RecentReports {
  private readonly byId = new Map<string, RunReport>();

  /** @param capacity reports kept, at least 1 */
  constructor(private readonly capacity = 256) {}

  /** A run that is run again under the same id replaces its earlier report. */
  add(report: RunReport): void {
    this.byId.delete(report.run_id);
    this.byId.set(report.run_id, report);
    if (this.byId.size <= this.capacity) return;
    const [oldest] = this.byId.keys();
    if (oldest !== undefined) this.byId.delete(oldest);
  }

  get(runId: string): RunReport | undefined {
    return this.byId.get(runId);
  }

  /** Newest last. */
  get ids(): readonly string[] {
    return [...this.byId.keys()];
  }
}
