import { resolve } from 'node:path';
import type { Log } from '../telemetry/log.ts';
import type { Ledger, LedgerPolicy } from './ledger.ts';

const POSTGRES_URL = /^postgres(ql)?:\/\//;

/**
 * Opens the ledger `db` names: a PostgreSQL URL, or a SQLite file relative to `cwd`. Only the
 * driver that is needed is loaded.
 *
 * @throws AgentdError LEDGER_UNAVAILABLE (exit 2 for a file that cannot be used) or LEDGER_SCHEMA_UNKNOWN
 */
export async function openLedger(db: string, cwd: string, policy: LedgerPolicy, log?: Log): Promise<Ledger> {
  if (!POSTGRES_URL.test(db)) {
    const { SqliteLedger } = await import('./sqlite/sqlite-ledger.ts');
    return await SqliteLedger.open({ path: resolve(cwd, db), policy });
  }
  const { PostgresLedger } = await import('./postgres/postgres-ledger.ts');
  const onTrouble = (reason: string): void => {
    log?.warn('mcp.disconnect', {
      server: 'postgres',
      msg: `the other servers are not heard for now: ${reason}`,
    });
  };
  return await PostgresLedger.open({ url: db, policy, onTrouble });
}
