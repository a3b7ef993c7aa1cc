import type { Component, EventName, LogLevel } from '../../protocol/event-line.ts';

/** Fields a line may carry beside the canonical ones, which a caller can never overwrite. */
export interface LogFields {
  readonly [key: string]: unknown;
  readonly dur_ms?: number;
  readonly err?: { readonly type: string; readonly message: string };
  readonly msg?: string;
  readonly trace_id?: string;
  readonly span_id?: string;
}

/** Whose line it is. */
export interface LogIdentity {
  readonly runId: string;
  readonly agentId: string;
  readonly agentPath: string;
  readonly comp: Component;
  readonly pid: number;
  /** W3C trace id the lines belong to, when there is one. */
  readonly traceId?: string;
  /** Span the lines belong to, when it is known. */
  readonly spanId?: string;
}

/** Writes telemetry lines. Never blocks and never throws: losing a line changes nothing (invariant 10). */
export interface Log {
  write(level: LogLevel, event: EventName, fields?: LogFields): void;
  trace(event: EventName, fields?: LogFields): void;
  debug(event: EventName, fields?: LogFields): void;
  info(event: EventName, fields?: LogFields): void;
  warn(event: EventName, fields?: LogFields): void;
  error(event: EventName, fields?: LogFields): void;
  /** The same sink under another identity, for lines of a child or of another component. */
  as(identity: Partial<LogIdentity>): Log;
}
