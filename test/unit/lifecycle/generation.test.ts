import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { nextGeneration } from '../../../supervisor/lifecycle/generation.ts';
import { nullLog, recordingLog } from '../../helpers/null-log.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'agentd-generation-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe('the stored generation', () => {
  it('counts restarts: none at the first start', () => {
    const path = join(folder, 'generation');
    expect([1, 2, 3].map(() => nextGeneration(path, nullLog))).toEqual([0, 1, 2]);
    expect(readFileSync(path, 'utf8')).toBe('3\n');
    expect(readdirSync(folder)).toEqual(['generation']);
  });

  it('begins again with a file that holds no count', () => {
    const path = join(folder, 'generation');
    for (const text of ['', 'x', '-1', '1e3', '99999999999999999999', '9007199254740993']) {
      writeFileSync(path, text);
      expect(nextGeneration(path, nullLog)).toBe(0);
      expect(nextGeneration(path, nullLog)).toBe(1);
    }
  });

  it('that cannot be stored is a warning and no failure', () => {
    const { log, lines } = recordingLog();
    expect(nextGeneration(join(folder, 'absent/generation'), log)).toBe(0);
    expect(lines.map((line) => [line.level, line.event])).toEqual([['warn', 'config.warn']]);
    expect(readdirSync(folder)).toEqual([]);
  });
});
