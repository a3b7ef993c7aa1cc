import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DEFAULT_POLICY } from '../../../supervisor/coordination/ledger.ts';
import { SqliteLedger } from '../../../supervisor/coordination/sqlite/sqlite-ledger.ts';

const run = promisify(execFile);
const CONTEND = fileURLToPath(new URL('../../fixtures/coordination/contend.ts', import.meta.url));
const TSX = fileURLToPath(import.meta.resolve('tsx'));

describe('several processes on one ledger file', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'agentd-contend-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it('eight processes of a thousand compare-and-sets each never hear that it is busy (H24)', async () => {
    const path = join(folder, 'ledger.db');
    const outputs = await Promise.all(
      Array.from({ length: 8 }, (_, index) =>
        run(process.execPath, ['--import', TSX, CONTEND, path, `p${index}`, '1000']),
      ),
    );
    const reports = outputs.map(({ stdout }) => JSON.parse(stdout) as { tokens: number[]; errors: string[] });
    expect(reports.flatMap((report) => report.errors)).toEqual([]);
    const tokens = reports.flatMap((report) => report.tokens);
    expect(tokens).toHaveLength(8_000);
    expect(new Set(tokens).size).toBe(8_000);
    for (const report of reports) expect(report.tokens).toEqual([...report.tokens].sort((a, b) => a - b));
    const ledger = await SqliteLedger.open({ path, policy: DEFAULT_POLICY });
    expect(await ledger.stats()).toMatchObject({ pending: 1, claimed: 0, done: 800 });
    expect(await ledger.find('shared')).toMatchObject({ state: 'ready', attempt: 0 });
    await ledger.close();
  }, 300_000);
});
