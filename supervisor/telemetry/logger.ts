import { fstatSync } from 'node:fs';
import type { Writable } from 'node:stream';
import { isatty } from 'node:tty';
import { pino } from 'pino';
import type { EventLine, EventName, LogLevel } from '../../protocol/event-line.ts';
import type { Log, LogFields, LogIdentity } from './log.ts';
import { openDestination } from './log-destination.ts';
import { textLine } from './log-text.ts';
import { boundedFields } from './log-values.ts';

export interface LogOptions {
  readonly level: LogLevel;
  readonly format: 'json' | 'text';
  readonly identity: LogIdentity;
  /** A descriptor number or a stream. Default: descriptor 2. */
  readonly destination?: number | Writable;
  /** Default: colours when the destination is a terminal and NO_COLOR is not set. */
  readonly color?: boolean;
  /** Bytes that may wait for a slow reader before lines are dropped. */
  readonly maxWaiting?: number;
  /** Whether lines of the agent with this path are written. Default: all are. */
  readonly shown?: (agentPath: string) => boolean;
  /** Gets every line that passes the level, written or not. */
  readonly onLine?: (line: EventLine) => void;
  /** Told how many lines were just dropped. */
  readonly onDropped?: (count: number) => void;
  readonly env?: NodeJS.ProcessEnv;
}

/** The log of a process, and the handle to end it with. */
export interface LogSink extends Log {
  setLevel(level: LogLevel): void;
  /** Waits until the lines so far are written, at the latest `budgetMs`. */
  flush(budgetMs: number): Promise<void>;
  /** Lines dropped so far. */
  readonly dropped: number;
}

/** sd-daemon(3): the syslog priority of each level. */
const PRIORITY: Record<LogLevel, number> = { trace: 7, debug: 7, info: 6, warn: 4, error: 3 };

/**
 * Creates the log of this process: JSON lines in the order of the contract (section 5), or text for
 * people. Never blocks and never throws; what the reader does not take in time is dropped and
 * counted.
 */
export function createLog(options: LogOptions): LogSink {
  const target = options.destination ?? 2;
  const env = options.env ?? process.env;
  const destination = openDestination(target, options.maxWaiting);
  const color =
    options.color ?? (typeof target === 'number' && isatty(target) && (env.NO_COLOR ?? '') === '');
  const toJournal = typeof target === 'number' && isJournal(target, env.JOURNAL_STREAM);
  let dropped = 0;

  const emit = (level: LogLevel, line: string): void => {
    if (destination.write(toJournal ? `<${PRIORITY[level]}>${line}` : line)) return;
    dropped += 1;
    options.onDropped?.(1);
  };
  let current: { level: LogLevel; ts: string; body: Record<string, unknown> } = {
    level: options.level,
    ts: '',
    body: {},
  };
  const json = pino(
    {
      level: options.level,
      base: null,
      // The line is given in full, in contract order: pino writes `{`, the time and our keys.
      formatters: { level: () => ({}), log: () => current.body },
      // Errors are reduced to type and message before they get here.
      serializers: { err: (value: unknown) => value },
      timestamp: () => `"ts":"${current.ts}"`,
    },
    { write: (line: string) => emit(current.level, line) },
  );

  const write: Write = (identity, level, event, fields) => {
    if (!json.isLevelEnabled(level)) return;
    const body = {
      level,
      event,
      run_id: identity.runId,
      agent_id: identity.agentId,
      agent_path: identity.agentPath,
      comp: identity.comp,
      pid: identity.pid,
      ...(identity.traceId === undefined ? {} : { trace_id: identity.traceId }),
      ...(identity.spanId === undefined ? {} : { span_id: identity.spanId }),
      ...boundedFields(fields),
    };
    current = { level, ts: new Date().toISOString(), body };
    const line: EventLine = { ts: current.ts, ...body };
    if (options.shown?.(identity.agentPath) ?? true) {
      if (options.format === 'text') emit(level, textLine(line, color));
      else json[level]({});
    }
    options.onLine?.(line);
  };

  return {
    ...logFor(options.identity, write),
    setLevel: (level) => {
      json.level = level;
    },
    flush: (budgetMs) => destination.flush(budgetMs),
    get dropped() {
      return dropped;
    },
  };
}

type Write = (identity: LogIdentity, level: LogLevel, event: EventName, fields: LogFields) => void;

function logFor(identity: LogIdentity, write: Write): Log {
  const at = (level: LogLevel, event: EventName, fields: LogFields = {}): void => {
    try {
      write(identity, level, event, fields);
    } catch {
      // Losing telemetry never changes a result (invariant 10).
    }
  };
  return {
    write: at,
    trace: (event, fields) => at('trace', event, fields),
    debug: (event, fields) => at('debug', event, fields),
    info: (event, fields) => at('info', event, fields),
    warn: (event, fields) => at('warn', event, fields),
    error: (event, fields) => at('error', event, fields),
    as: (more) => logFor({ ...identity, ...more }, write),
  };
}

/** JOURNAL_STREAM names device and inode of the journal's socket (systemd.exec(5)). */
function isJournal(fd: number, journalStream: string | undefined): boolean {
  if (journalStream === undefined || journalStream === '') return false;
  try {
    const { dev, ino } = fstatSync(fd, { bigint: true });
    return `${dev}:${ino}` === journalStream;
  } catch {
    return false;
  }
}
