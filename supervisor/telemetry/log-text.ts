import type { LogLevel } from '../../protocol/event-line.ts';

/** The `text` log format: one compact line for people, `time level path event key=value …`. */

const LEVEL_COLOR: Record<LogLevel, number> = { trace: 90, debug: 36, info: 32, warn: 33, error: 31 };
/** Shown elsewhere on the line or the same on every line. */
const HIDDEN: ReadonlySet<string> = new Set([
  'ts',
  'level',
  'event',
  'run_id',
  'agent_id',
  'agent_path',
  'comp',
  'pid',
  'seq',
  'trace_id',
  'span_id',
  'parent_span_id',
  'err',
  'msg',
]);

/** An event line of any version of the vocabulary. */
export interface PrintableLine {
  readonly [key: string]: unknown;
  readonly ts: string;
  readonly level: LogLevel;
  readonly event: string;
  readonly agent_path: string;
  readonly msg?: string | undefined;
  readonly err?: { readonly type: string; readonly message: string } | undefined;
}

/** Formats one line, newline included. Control characters in values are escaped. */
export function textLine(line: PrintableLine, color: boolean): string {
  const paint = (code: number, text: string): string => (color ? `\u001b[${code}m${text}\u001b[0m` : text);
  const parts = [
    paint(90, line.ts.slice(11, 23)),
    paint(LEVEL_COLOR[line.level], line.level.toUpperCase().padEnd(5)),
    paint(90, printable(line.agent_path)),
    paint(1, printable(line.event)),
  ];
  if (line.msg !== undefined) parts.push(printable(line.msg));
  for (const key of Object.keys(line)) {
    if (!HIDDEN.has(key)) parts.push(`${paint(36, printable(key))}=${valueText(line[key])}`);
  }
  if (line.err !== undefined) parts.push(paint(31, printable(`${line.err.type}: ${line.err.message}`)));
  return `${parts.join(' ')}\n`;
}

function valueText(value: unknown): string {
  if (typeof value !== 'string') return printable(JSON.stringify(value) ?? String(value));
  return /^[\w.:/@%+,-]+$/.test(value) ? value : printable(JSON.stringify(value));
}

/** Escapes control characters: a terminal must not be steered by what a peer wrote. */
export function printable(text: string): string {
  return text.replace(
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
    /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
