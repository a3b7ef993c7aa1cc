import { durationText } from '../telemetry/duration-text.ts';
import type { ReadReport } from '../telemetry/report-reader.ts';

/** Run reports as a table for people. Widths are fixed, so that rows can be added while following. */

interface Column {
  readonly title: string;
  readonly width: number;
  readonly right?: true;
  readonly cell: (report: ReadReport) => string;
}

const COLUMNS: readonly Column[] = [
  { title: 'RUN', width: 26, cell: (report) => report.run_id },
  { title: 'STATUS', width: 16, cell: (report) => report.status + (report.has_usable_partial ? '*' : '') },
  { title: 'EXIT', width: 4, right: true, cell: (report) => String(report.exit_code) },
  { title: 'MODE', width: 8, cell: (report) => report.mode },
  { title: 'STEPS', width: 6, right: true, cell: (report) => String(report.usage.steps) },
  { title: 'TOKENS IN', width: 10, right: true, cell: (report) => String(report.usage.tokens_in) },
  { title: 'OUT', width: 8, right: true, cell: (report) => String(report.usage.tokens_out) },
  { title: 'AGENTS', width: 6, right: true, cell: (report) => String(report.usage.subagents) },
  { title: 'DURATION', width: 9, right: true, cell: (report) => durationText(report.duration_ms) },
  { title: 'ENDED', width: 20, cell: (report) => report.ended_at.replace(/\.\d+/, '') },
];

export function tableHeader(): string {
  return row((column) => column.title);
}

/** One line. With `color`, the status shows at a glance; a `*` marks a usable partial result. */
export function tableRow(report: ReadReport, color: boolean): string {
  const line = row((column) => printable(column.cell(report)));
  if (!color) return line;
  const code = report.status === 'completed' ? 32 : report.has_usable_partial ? 33 : 31;
  return `\u001b[${code}m${line}\u001b[0m`;
}

function row(cell: (column: Column) => string): string {
  return COLUMNS.map((column) =>
    column.right ? cell(column).padStart(column.width) : cell(column).padEnd(column.width),
  )
    .join('  ')
    .trimEnd();
}

/** A report may be anybody's file; a terminal must not be steered by it. */
function printable(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  return text.replace(/[\u0000-\u001f\u007f-\u009f]/g, '?');
}
