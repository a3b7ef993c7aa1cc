import { stripVTControlCharacters } from 'node:util';
import { ERRORS } from '../../protocol/errors.ts';
import type { LogLevel } from '../../protocol/event-line.ts';
import { pathColor } from './aggregate.ts';
import { durationText } from './duration-text.ts';

/**
 * The `text` log format: one line for people, `time level path event message key=value … error
 * duration → remedy`, in columns. What a child wrote on its standard error is `time path │ text`.
 */

const LEVEL_COLOR: Record<LogLevel, string> = {
  trace: '90',
  debug: '36',
  info: '32',
  warn: '33',
  error: '31',
};
const DIM = '90';
const BOLD = '1';
const CYAN = '36';
const RED = '31';
/** Widths of columns: nearly every path and event name fits, and a longer one moves its line alone. */
const PATH_WIDTH = 6;
const EVENT_WIDTH = 16;
/** Characters of one value that are shown; the whole value is in the JSON format. */
const VALUE_CHARACTERS = 160;

/** Shown elsewhere on the line, the same on every line, or nothing to a reader. */
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
  'dur_ms',
  'err',
  'msg',
  'remedy',
  'sha256',
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
  /** What to do about it. */
  readonly remedy?: unknown;
}

/** Formats one line, newline included. Control characters in values are escaped. */
export function textLine(line: PrintableLine, color: boolean): string {
  const paint = (code: string, text: string): string =>
    color && text !== '' ? `\u001b[${code}m${text}\u001b[0m` : text;
  const ownColor = pathColor(line.agent_path);
  const path = paint(
    ownColor === null ? DIM : `38;5;${ownColor}`,
    printable(line.agent_path).padEnd(PATH_WIDTH),
  );
  const time = paint(DIM, line.ts.slice(11, 23));
  if (line.stream === 'stderr' && line.msg !== undefined) {
    const bar = paint(ownColor === null ? DIM : `38;5;${ownColor}`, '│');
    return `${time}       ${path} ${bar} ${printable(stripVTControlCharacters(line.msg))}\n`;
  }
  const parts = [
    time,
    paint(LEVEL_COLOR[line.level], line.level.toUpperCase().padEnd(5)),
    path,
    paint(BOLD, printable(line.event).padEnd(EVENT_WIDTH)),
  ];
  if (line.msg !== undefined) parts.push(printable(line.msg));
  for (const [key, text] of Object.entries(line).flatMap(fieldTexts)) {
    parts.push(`${paint(CYAN, key)}=${text}`);
  }
  if (line.err !== undefined) parts.push(paint(RED, printable(`${line.err.type}: ${line.err.message}`)));
  if (typeof line.dur_ms === 'number') parts.push(paint(DIM, `(${durationText(line.dur_ms)})`));
  // Whole, and last: it is what the reader does next.
  const remedy = typeof line.remedy === 'string' ? line.remedy : whereToLook(line.err?.type);
  if (remedy !== null) parts.push(paint(CYAN, '→'), printable(remedy));
  return `${parts.join(' ').trimEnd()}\n`;
}

/** The page of an error that has one: its line may come from a run, which knows the code alone. */
function whereToLook(code: string | undefined): string | null {
  return code !== undefined && Object.hasOwn(ERRORS, code) ? `agentd help ${code}` : null;
}

/** The fields of a value worth a reader's time: nothing for nothing, one level of an object unfolded. */
function fieldTexts([key, value]: readonly [string, unknown]): (readonly [string, string])[] {
  if (HIDDEN.has(key) || isNothing(value)) return [];
  if (typeof value !== 'object' || Array.isArray(value)) return [[printable(key), valueText(value)]];
  const inner = Object.entries(value ?? {});
  if (inner.length > 6 || inner.some(([, held]) => typeof held === 'object' && held !== null)) {
    return [[printable(key), valueText(value)]];
  }
  return inner
    .filter(([name, held]) => !HIDDEN.has(name) && !isNothing(held))
    .map(([name, held]) => [printable(`${key}.${name}`), valueText(held)]);
}

function isNothing(value: unknown): boolean {
  return value === null || value === undefined || (Array.isArray(value) && value.length === 0);
}

function valueText(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? String(value));
  const kept = text.length > VALUE_CHARACTERS ? `${text.slice(0, VALUE_CHARACTERS)}…` : text;
  if (typeof value !== 'string') return printable(kept);
  return /^[\w.:/@%+,*-]+$/.test(kept) ? kept : printable(JSON.stringify(kept));
}

/** Escapes control characters: a terminal must not be steered by what a peer wrote. */
export function printable(text: string): string {
  return text.replace(
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
    /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
