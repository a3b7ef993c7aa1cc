import { isAbsolute, resolve } from 'node:path';
import type { Ledger, LedgerPolicy } from './ledger.ts';
import { SqliteLedger } from './sqlite/sqlite-ledger.ts';

/**
 * Opens the ledger `db` names: a SQLite file, relative to `cwd`.
 *
 * @throws AgentdError LEDGER_UNAVAILABLE (exit 2) or LEDGER_SCHEMA_UNKNOWN
 */
export async function openLedger(db: string, cwd: string, policy: LedgerPolicy): Promise<Ledger> {
  const path = isAbsolute(db) ? db : resolve(cwd, db);
  return await SqliteLedger.open({ path, policy });
}
