import { printable } from '../telemetry/log-text.ts';
import { type Paint, widthOf } from './style.ts';

/** One column of a table for people. */
export interface Column<Row> {
  readonly title: string;
  /** Figures stand to the right. */
  readonly right?: true;
  readonly cell: (row: Row) => string;
  /** Colours the cell after it was made safe and before it is padded. */
  readonly style?: (text: string, row: Row) => string;
}

/** A table whose columns are as wide as they need to be. Cells may hold what a peer wrote. */
export function tableLines<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  paint: Paint,
): string[] {
  const cells = rows.map((row) =>
    columns.map(({ cell, style }) => {
      const text = printable(cell(row));
      return style === undefined ? text : style(text, row);
    }),
  );
  const widths = columns.map(({ title }, at) =>
    Math.max(title.length, ...cells.map((row) => widthOf(row[at] ?? ''))),
  );
  const line = (row: readonly string[]): string =>
    row
      .map((text, at) => {
        const padding = ' '.repeat(Math.max(0, (widths[at] ?? 0) - widthOf(text)));
        return columns[at]?.right ? padding + text : text + padding;
      })
      .join('  ')
      .trimEnd();
  return [paint('dim', line(columns.map(({ title }) => title))), ...cells.map(line)];
}
