import type { EventName, LogLevel } from '../../protocol/event-line.ts';
import type { Log, LogFields, LogIdentity } from '../../supervisor/telemetry/log.ts';

export interface RecordedLine {
  readonly level: LogLevel;
  readonly event: EventName;
  readonly fields: LogFields;
  readonly identity: Partial<LogIdentity>;
}

/** A log that keeps its lines in memory. */
export function recordingLog(): { readonly log: Log; readonly lines: RecordedLine[] } {
  const lines: RecordedLine[] = [];
  const make = (identity: Partial<LogIdentity>): Log => {
    const write = (level: LogLevel, event: EventName, fields: LogFields = {}): void => {
      lines.push({ level, event, fields, identity });
    };
    return {
      write,
      trace: (event, fields) => write('trace', event, fields),
      debug: (event, fields) => write('debug', event, fields),
      info: (event, fields) => write('info', event, fields),
      warn: (event, fields) => write('warn', event, fields),
      error: (event, fields) => write('error', event, fields),
      as: (more) => make({ ...identity, ...more }),
    };
  };
  return { log: make({}), lines };
}

/** A log for tests that do not look at it. */
export const nullLog: Log = recordingLog().log;
