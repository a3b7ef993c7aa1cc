import { describe, expect, test } from 'vitest';
import { EXIT, EXIT_CODE_TABLE, exitCodeFor } from '../../../protocol/exit-codes.ts';
import { TERMINAL_STATUSES, type TerminalStatus } from '../../../protocol/terminal-status.ts';

/** Contract, section 3: without and with a usable partial. */
const EXPECTED: Readonly<Record<TerminalStatus, readonly [number, number]>> = {
  completed: [0, 0],
  refused: [5, 5],
  exhausted_steps: [7, 3],
  exhausted_tokens: [7, 3],
  deadline: [124, 124],
  stalled: [1, 3],
  loop_detected: [1, 3],
  cancelled: [0, 0],
  crashed: [1, 1],
};

describe('exit codes', () => {
  test.each(TERMINAL_STATUSES)('a one-shot run that ends %s exits as the contract says', (status) => {
    const [without, withPartial] = EXPECTED[status];
    expect(exitCodeFor({ status, hasUsablePartial: false })).toBe(without);
    expect(exitCodeFor({ status, hasUsablePartial: true })).toBe(withPartial);
  });

  test('a failed model endpoint is 4 and a lost MCP server 6, of a crashed run only', () => {
    expect(exitCodeFor({ status: 'crashed', hasUsablePartial: true, intelligenceFailed: true })).toBe(4);
    expect(exitCodeFor({ status: 'crashed', hasUsablePartial: false, mcpFailed: true })).toBe(6);
    expect(exitCodeFor({ status: 'completed', hasUsablePartial: false, intelligenceFailed: true })).toBe(0);
  });

  test('the budget exit code replaces 3 and 7 and nothing else', () => {
    for (const status of TERMINAL_STATUSES) {
      for (const hasUsablePartial of [false, true]) {
        const plain = exitCodeFor({ status, hasUsablePartial });
        const remapped = exitCodeFor({ status, hasUsablePartial }, 99);
        expect(remapped).toBe(plain === 3 || plain === 7 ? 99 : plain);
      }
    }
  });

  test('the table lists every code once, and 137 is never returned', () => {
    expect(EXIT_CODE_TABLE.map((row) => row.code)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 124, 137, 143]);
    expect([...Object.values(EXIT)].sort((a, b) => a - b)).toEqual(EXIT_CODE_TABLE.map((row) => row.code));
    const returned = TERMINAL_STATUSES.flatMap((status) =>
      [false, true].map((hasUsablePartial) => exitCodeFor({ status, hasUsablePartial })),
    );
    expect(returned).not.toContain(EXIT.KILLED);
  });
});
