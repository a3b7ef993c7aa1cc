import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DEFAULT_POLICY, type Ledger } from '../../supervisor/coordination/ledger.ts';
import { openLedger } from '../../supervisor/coordination/open-ledger.ts';
import { POSTGRES_MISSING, startPostgres } from '../../test/helpers/postgres.ts';
import { print, quantile } from './report.ts';

const SAMPLES = 300;
const BATCH = 512;

/**
 * How the cost of a claim grows with what is pending: it must stay flat.
 *
 * @param argument the most items; default 100,000, by command 1,000,000
 */
export async function run(argument?: string): Promise<void> {
  const most = argument === undefined ? 100_000 : Number(argument);
  if (!Number.isInteger(most) || most < 1_000)
    throw new Error(`ledger-growth: ${argument} is no number of items`);
  const folder = await mkdtemp(join(tmpdir(), 'agentd-bench-'));
  try {
    await grow('SQLite', join(folder, 'ledger.sqlite'), most);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  if (POSTGRES_MISSING !== null) {
    process.stdout.write(`${POSTGRES_MISSING}\n`);
    return;
  }
  const server = await startPostgres(true);
  try {
    await grow('PostgreSQL', await server.createDatabase(), most);
  } finally {
    await server.stop();
  }
}

async function grow(adapter: string, db: string, most: number): Promise<void> {
  const ledger = await openLedger(db, tmpdir(), DEFAULT_POLICY);
  let pending = 0;
  for (let size = 1_000; size <= most; size *= 10) {
    await fill(ledger, pending, size);
    pending = size;
    await sample(adapter, ledger, size);
  }
  await ledger.close();
}

async function fill(ledger: Ledger, from: number, to: number): Promise<void> {
  for (let start = from; start < to; start += BATCH) {
    const count = Math.min(BATCH, to - start);
    await Promise.all(
      Array.from({ length: count }, (_, index) =>
        ledger.submit({
          key: `item-${start + index}`,
          item: `item-${start + index}`,
          kind: 'default',
          tenant: `tenant-${index % 8}`,
          priority: 'normal',
          maxAttempts: null,
          delayMs: 0,
          dependsOn: [],
        }),
      ),
    );
  }
}

/** What is claimed is given back, so that as many wait afterwards as before. */
async function sample(adapter: string, ledger: Ledger, size: number): Promise<void> {
  const next: number[] = [];
  const stats: number[] = [];
  for (let index = 0; index < SAMPLES; index++) {
    let start = performance.now();
    const [work] = await ledger.claimNext({
      holder: 'bench',
      ttlMs: 60_000,
      max: 1,
      kinds: null,
      tenants: null,
    });
    next.push(performance.now() - start);
    if (work === undefined) throw new Error('nothing was claimable');
    await ledger.release({ leaseId: work.leaseId, holder: 'bench', reason: 'drain' });
    start = performance.now();
    await ledger.stats();
    stats.push(performance.now() - start);
  }
  const items = size.toLocaleString('en');
  print({ what: `claim_next, ${adapter}, ${items} pending, p50`, value: quantile(next, 0.5), unit: 'ms' });
  print({ what: `stats, ${adapter}, ${items} pending, p50`, value: quantile(stats, 0.5), unit: 'ms' });
}
