import { createHash } from 'node:crypto';
import { type EventName, LOG_LEVELS, type LogLevel } from '../protocol/event-line.ts';
import type { ChildNotification, RunStart, Usage } from '../protocol/frames.ts';
import { cutMiddle } from './loop/distill.ts';
import type { CallReport } from './model/model.ts';

/** Longest content of a log line, characters. */
const LONGEST_CONTENT = 16 * 1024;

type Progress = Extract<ChildNotification, { method: 'run.progress' }>['params'];

/** Where reports go. `lossy` may drop while the supervisor reads too slowly. */
export interface ReportSink {
  notify(message: ChildNotification): void;
  notifyLossy(message: ChildNotification): void;
}

/** Tells the supervisor what a run is doing: progress frames and log frames. */
export class Reporter {
  private readonly threshold: number;

  constructor(
    private readonly run: Pick<RunStart, 'run_id' | 'telemetry'>,
    private readonly usage: () => Usage,
    private readonly sink: ReportSink,
  ) {
    const level = (LOG_LEVELS as readonly string[]).indexOf(run.telemetry.log_level);
    this.threshold = level === -1 ? LOG_LEVELS.indexOf('info') : level;
  }

  progress(kind: Progress['kind']): void {
    this.sink.notify({
      method: 'run.progress',
      params: { run_id: this.run.run_id, kind, usage: this.usage() },
    });
  }

  /** One model call. Tokens the endpoint did not report count as none. */
  modelCall(report: CallReport): void {
    const { endpoint, durationMs, failure, model, usage, spanId } = report;
    // A context that is none has no span.
    const span = spanId !== undefined && /^[0-9a-f]{16}$/.test(spanId) ? { span_id: spanId } : {};
    this.sink.notify({
      method: 'run.progress',
      params: {
        run_id: this.run.run_id,
        kind: 'model',
        usage: this.usage(),
        model,
        call: {
          dur_ms: Math.round(durationMs),
          ok: failure === null,
          tokens_in: usage?.tokensIn ?? 0,
          tokens_out: usage?.tokensOut ?? 0,
          ...(failure === null ? {} : { reason: failure.reason }),
          endpoint,
          ...span,
        },
      },
    });
    this.log(failure === null ? 'debug' : 'warn', 'intel.result', {
      dur_ms: Math.round(durationMs),
      endpoint,
      model,
      ...span,
      ...(usage === null ? {} : { tokens_in: usage.tokensIn, tokens_out: usage.tokensOut }),
      ...(failure === null ? {} : { err: { type: failure.reason, message: failure.message } }),
    });
  }

  log(level: LogLevel, event: EventName, fields: Record<string, unknown> = {}): void {
    if (!this.logs(level)) return;
    this.sink.notifyLossy({ method: 'log', params: { level, event, fields } });
  }

  /** Whether a line of this level is wanted, for fields that cost something to make. */
  logs(level: LogLevel): boolean {
    return LOG_LEVELS.indexOf(level) >= this.threshold;
  }

  /** Content as it may be logged: hash and length, or itself, cut, where that was asked for. */
  content(text: string): Record<string, unknown> {
    if (this.run.telemetry.log_content)
      return { content: cutMiddle(text, LONGEST_CONTENT), length: text.length };
    const hash = createHash('sha256').update(text).digest('hex').slice(0, 16);
    return { sha256: hash, length: text.length };
  }
}
