import type { Usage } from '../../protocol/frames.ts';
import type { RunReport } from '../../protocol/run-report.ts';
import type { TerminalStatus } from '../../protocol/terminal-status.ts';
import type { Log } from './log.ts';
import { replaceFile } from './replace-file.ts';

export type Refusals = RunReport['refusals'];
export const NO_REFUSALS: Refusals = { trifecta: 0, rate: 0, budget: 0, depth: 0, mcp: 0 };

/** What a report is made of, in the supervisor's own terms. */
export interface RunFacts {
  readonly runId: string;
  readonly instance: string | null;
  readonly mode: RunReport['mode'];
  readonly status: TerminalStatus;
  readonly exitCode: number;
  readonly hasUsablePartial: boolean;
  /** As the endpoints reported it; what they did not report is not guessed. */
  readonly usage: Usage;
  readonly durationMs: number;
  /** Milliseconds since the Unix epoch at which the run ended. */
  readonly endedAt: number;
  readonly traceId: string | null;
  readonly refusals: Partial<Refusals>;
}

/** The report of a run (contract, section 6). Absent values are omitted, never null. */
export function runReportOf(facts: RunFacts): RunReport {
  const { usage, refusals } = facts;
  const duration = Math.max(0, Math.round(facts.durationMs));
  return {
    report_schema: '1.0',
    run_id: facts.runId,
    ...(facts.instance === null ? {} : { instance: facts.instance }),
    mode: facts.mode,
    status: facts.status,
    exit_code: facts.exitCode,
    has_usable_partial: facts.hasUsablePartial,
    usage: {
      tokens_in: usage.tokens_in,
      tokens_out: usage.tokens_out,
      steps: usage.steps,
      subagents: usage.subagents,
    },
    duration_ms: duration,
    started_at: new Date(facts.endedAt - duration).toISOString(),
    ended_at: new Date(facts.endedAt).toISOString(),
    distillate_ref: 'agent://subagent/0/result',
    ...(facts.traceId === null ? {} : { trace_id: facts.traceId }),
    refusals: { ...NO_REFUSALS, ...refusals },
  };
}

/**
 * The report file of a process: written once, at the terminal transition, whole or not at all. A
 * failure is a warning and changes neither result nor exit code (invariant 10).
 */
export class RunReportFile {
  private written = false;

  constructor(
    private readonly path: string,
    private readonly log: Log,
  ) {}

  /** Writes the first report it is given and ignores every later one. */
  write(report: RunReport): void {
    if (this.written) return;
    this.written = true;
    try {
      replaceFile(this.path, `${JSON.stringify(report, null, 2)}\n`);
      this.log.info('report.written', { path: this.path, status: report.status });
    } catch (error) {
      const { code = 'Error', message } = error as NodeJS.ErrnoException;
      this.log.warn('report.write.fail', { path: this.path, err: { type: code, message } });
    }
  }
}
