import { EXIT } from '../../protocol/exit-codes.ts';
import { NO_USAGE, type Usage } from '../../protocol/frames.ts';
import type { RunOutcome } from '../children/run.ts';
import type { Config } from '../config/config.ts';
import type { Clock } from '../reactor/clock.ts';
import type { Log } from '../telemetry/log.ts';
import type { Labels, MetricName, Metrics } from '../telemetry/metrics.ts';
import { type Refusals, RunReportFile, runReportOf } from '../telemetry/run-reports.ts';

/**
 * The run report of this process: its last root run, with what all of them used, written when the
 * process is about to end. A reactive instance writes none (contract, section 6).
 */
export class FinalReport {
  private readonly file: RunReportFile | null;
  private readonly startedAt: number;
  private last: RunOutcome | null = null;
  private usage: Usage = NO_USAGE;
  private readonly refusals: Record<keyof Refusals, number> = {
    trifecta: 0,
    rate: 0,
    budget: 0,
    depth: 0,
    mcp: 0,
  };

  constructor(
    private readonly config: Config,
    private readonly identity: { readonly runId: string; readonly traceId: string | null },
    private readonly clock: Clock,
    log: Log,
  ) {
    const { reportFile } = config.observability;
    this.file = reportFile === null || config.mode === 'reactive' ? null : new RunReportFile(reportFile, log);
    this.startedAt = clock.now();
  }

  /** The same metrics, with refusals counted for the report on the way. */
  counting(metrics: Metrics): Metrics {
    return {
      ...metrics,
      add: (name: MetricName, labels?: Labels, by?: number) => {
        const reason = labels?.reason;
        if (name === 'agent_refusals_total' && reason !== undefined && reason in this.refusals) {
          this.refusals[reason as keyof Refusals] += by ?? 1;
        }
        metrics.add(name, labels, by);
      },
    };
  }

  /** A root run is over. */
  take(outcome: RunOutcome): void {
    this.last = outcome;
    const { usage } = outcome;
    this.usage = {
      tokens_in: this.usage.tokens_in + usage.tokens_in,
      tokens_out: this.usage.tokens_out + usage.tokens_out,
      steps: this.usage.steps + usage.steps,
      subagents: this.usage.subagents + usage.subagents,
    };
  }

  /** A run that never began, or was ended with its process by the loss of a server, did not end well. */
  private status(exitCode: number): RunOutcome['status'] {
    const status =
      this.last?.status ?? (exitCode === EXIT.OK || exitCode === EXIT.FORCED ? 'cancelled' : 'crashed');
    return status === 'cancelled' && exitCode === EXIT.MCP ? 'crashed' : status;
  }

  /** Writes it, once. */
  write(exitCode: number): void {
    const { mode } = this.config;
    if (this.file === null || mode === 'reactive') return;
    this.file.write(
      runReportOf({
        runId: this.last?.runId ?? this.identity.runId,
        instance: this.config.identity.instance,
        mode,
        status: this.status(exitCode),
        exitCode,
        hasUsablePartial: this.last?.hasUsablePartial ?? false,
        usage: this.usage,
        durationMs: this.clock.now() - this.startedAt,
        endedAt: this.clock.wall(),
        traceId: this.identity.traceId,
        refusals: this.refusals,
      }),
    );
  }
}
