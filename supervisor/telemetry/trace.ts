import { randomBytes } from 'node:crypto';

/**
 * W3C Trace Context (https://www.w3.org/TR/trace-context/): who called whom, across processes. The
 * context travels as the text of a `traceparent`.
 */
export interface TraceContext {
  /** 32 lower-case hexadecimal digits, not all 0. */
  readonly traceId: string;
  /** 16 lower-case hexadecimal digits, not all 0. */
  readonly spanId: string;
  readonly sampled: boolean;
}

const PATTERN = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

/** Null for what the specification calls invalid: such a value is ignored. */
export function parseTraceparent(text: string): TraceContext | null {
  const match = PATTERN.exec(text);
  if (match === null) return null;
  const [, version = '', traceId = '', spanId = '', flags = '', rest] = match;
  // Later versions may append fields; this one has none.
  if (version === 'ff' || (version === '00' && rest !== undefined)) return null;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return null;
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

export function formatTraceparent({ traceId, spanId, sampled }: TraceContext): string {
  return `00-${traceId}-${spanId}-${sampled ? '01' : '00'}`;
}

/** The root of a new trace. */
export function newTraceparent(): string {
  return formatTraceparent({ traceId: hexId(16), spanId: hexId(8), sampled: true });
}

/** What was given where it is valid, otherwise the root of a new trace. */
export function adoptTraceparent(given: string | null): string {
  const context = given === null ? null : parseTraceparent(given);
  return context === null ? newTraceparent() : formatTraceparent(context);
}

/** A new span under `parent`, in the same trace. An invalid parent begins a new trace. */
export function childTraceparent(parent: string): string {
  const context = parseTraceparent(parent);
  return context === null ? newTraceparent() : formatTraceparent({ ...context, spanId: hexId(8) });
}

/** The trace id for log lines and reports; null where the value is invalid. */
export function traceIdOf(traceparent: string): string | null {
  return parseTraceparent(traceparent)?.traceId ?? null;
}

/** The span id for log lines; null where the value is invalid. */
export function spanIdOf(traceparent: string): string | null {
  return parseTraceparent(traceparent)?.spanId ?? null;
}

/** Random and never all 0. */
function hexId(bytes: number): string {
  for (;;) {
    const id = randomBytes(bytes);
    if (id.some((byte) => byte !== 0)) return id.toString('hex');
  }
}
