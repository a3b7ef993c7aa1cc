import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { describe, expect, it } from 'vitest';

const SCRIPT = fileURLToPath(new URL('../../../scripts/count-tests.mjs', import.meta.url));

async function count(report: unknown, status: number): Promise<{ code: number | undefined; out: string }> {
  const dir = mkdtempSync(join(tmpdir(), 'agentd-count-'));
  try {
    const path = join(dir, 'report.json');
    if (report !== undefined) writeFileSync(path, JSON.stringify(report));
    const { exitCode, stdout } = await execa('node', [SCRIPT, path, String(status)], { reject: false });
    return { code: exitCode, out: stdout };
  } finally {
    rmSync(dir, { recursive: true });
  }
}

function file(...statuses: readonly string[]): unknown {
  return {
    status: statuses.includes('failed') ? 'failed' : 'passed',
    assertionResults: statuses.map((status) => ({ status })),
  };
}

describe('the count at the end of a test run', () => {
  it.each([
    [
      'all passed',
      { testResults: [file('passed', 'passed'), file('passed', 'skipped')] },
      0,
      '3 passed, 0 failed',
      0,
    ],
    ['one failed', { testResults: [file('passed', 'failed')] }, 1, '1 passed, 1 failed', 1],
    ['none ran', { testResults: [] }, 0, '0 passed, 0 failed', 1],
    [
      'a file could not be loaded',
      { testResults: [file('passed'), { status: 'failed', assertionResults: [] }] },
      1,
      '1 passed, 1 failed',
      1,
    ],
    ['an error outside any test', { testResults: [file('passed')] }, 1, '1 passed, 1 failed', 1],
    ['there is no report', undefined, 1, '0 passed, 1 failed', 1],
  ])('is right when %s', async (_name, report, status, line, code) => {
    expect(await count(report, status)).toEqual({ code, out: line });
  });
});
