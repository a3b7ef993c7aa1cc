import { tmpdir } from 'node:os';
import { DEFAULT_POLICY } from '../../supervisor/coordination/ledger.ts';
import { openLedger } from '../../supervisor/coordination/open-ledger.ts';
import { POSTGRES_MISSING, startPostgres } from '../../test/helpers/postgres.ts';
import { claimPairs } from './contention.ts';

const PAIRS = 3_000;

/** The PostgreSQL adapter on a server of our own, commits reaching the disk. */
export async function run(): Promise<void> {
  if (POSTGRES_MISSING !== null) {
    process.stdout.write(`${POSTGRES_MISSING}\n`);
    return;
  }
  const server = await startPostgres(true);
  try {
    const ledger = await openLedger(await server.createDatabase(), tmpdir(), DEFAULT_POLICY);
    for (const contenders of [1, 4, 16, 64]) {
      await claimPairs(ledger, { adapter: 'PostgreSQL', contenders, pairs: PAIRS });
    }
    await ledger.close();
  } finally {
    await server.stop();
  }
}
