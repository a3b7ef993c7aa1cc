import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { expect, it, vi } from 'vitest';
import { DEFAULT_POLICY } from '../../../supervisor/coordination/ledger.ts';
import { SqliteLedger } from '../../../supervisor/coordination/sqlite/sqlite-ledger.ts';

it('never scans the items of a SQLite ledger, so that cost does not grow with what waits', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'agentd-plans-'));
  const path = join(folder, 'ledger.db');
  const prepare = vi.spyOn(Sqlite.prototype, 'prepare');
  const ledger = await SqliteLedger.open({ path, policy: DEFAULT_POLICY });
  const sources = prepare.mock.calls.map(([source]) => String(source));
  prepare.mockRestore();
  const db = new Sqlite(path);
  const plans = sources
    .filter((source) => /^\s*(SELECT|UPDATE|DELETE|INSERT)/.test(source) && source.includes('work_item'))
    .map((source) => {
      const bare = source.replace(/\?|@\w+/g, 'NULL');
      const steps = db.prepare<[], { detail: string }>(`EXPLAIN QUERY PLAN ${bare}`).all();
      return { source, steps: steps.map(({ detail }) => detail) };
    });
  db.close();
  await ledger.close();
  rmSync(folder, { recursive: true, force: true });
  expect(plans.length).toBeGreaterThan(12);
  for (const { source, steps } of plans) {
    for (const step of steps) {
      // A walk along an index in its own order ends at the LIMIT; anything else would read it all.
      expect(step, source).not.toMatch(/SCAN (work_item|w)(?! USING (COVERING )?INDEX)/);
      expect(step, source).not.toMatch(/TEMP B-TREE/);
    }
  }
});
