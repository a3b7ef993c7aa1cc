import { EXIT_CODE_TABLE, exitCodeFor } from '../../protocol/exit-codes.ts';
import { TERMINAL_STATUSES } from '../../protocol/terminal-status.ts';
import { code, page, table } from './markdown.ts';

/** docs/exit-codes.md. */
export function exitCodesPage(): string {
  return page(
    '# Exit codes',
    table(
      ['code', 'name', 'when', 'intent for a scheduler'],
      EXIT_CODE_TABLE.map((row) => [String(row.code), row.name, row.when, row.intent]),
    ),
    '`--budget-exit-code N` replaces 3 and 7 and nothing else. A reactive supervisor exits only with 0, ' +
      '143, 4 or 6 (and 137 by the kernel): one failed reaction never ends it.',
    '## How a one-shot run ends',
    table(
      ['terminal status', 'exit code', 'with a usable partial result'],
      TERMINAL_STATUSES.map((status) => [
        code(status),
        String(exitCodeFor({ status, hasUsablePartial: false })),
        String(exitCodeFor({ status, hasUsablePartial: true })),
      ]),
    ),
    'A run that crashed because no model endpoint could be used exits 4, and 6 when a required MCP server ' +
      'was lost.',
  );
}
