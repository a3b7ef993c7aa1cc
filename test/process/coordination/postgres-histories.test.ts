import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DEFAULT_POLICY } from '../../../supervisor/coordination/ledger.ts';
import { PostgresLedger } from '../../../supervisor/coordination/postgres/postgres-ledger.ts';
import { ask, POSTGRES_MISSING, type PostgresServer, startPostgres } from '../../helpers/postgres.ts';
import { REPLAY_ATTEMPTS, replay } from '../../helpers/simulation/replay.ts';

const SEEDS = 8;

if (POSTGRES_MISSING !== null) console.warn(POSTGRES_MISSING);

describe.skipIf(POSTGRES_MISSING !== null)(
  'the PostgreSQL ledger under the histories of simulated fleets',
  () => {
    let server: PostgresServer;
    beforeAll(async () => {
      server = await startPostgres();
    });
    afterAll(() => server.stop());

    it(`answers every call of ${SEEDS} seeds as the model did`, async () => {
      let calls = 0;
      for (let seed = 1; seed <= SEEDS; seed++) {
        const url = await server.createDatabase();
        const policy = { ...DEFAULT_POLICY, maxAttempts: REPLAY_ATTEMPTS };
        const ledger = await PostgresLedger.open({ url, policy });
        try {
          await ask(url, TEST_CLOCK);
          calls += await replay(seed, ledger, async (now) => {
            await ask(url, `UPDATE agentd.test_clock SET now = ${now}`);
          });
        } finally {
          await ledger.close();
        }
      }
      expect(calls).toBeGreaterThan(SEEDS * 20);
    }, 240_000);
  },
);

/** The database's clock, set by hand. */
const TEST_CLOCK = `
  CREATE TABLE agentd.test_clock (now bigint NOT NULL);
  INSERT INTO agentd.test_clock VALUES (0);
  CREATE OR REPLACE FUNCTION agentd.ledger_now() RETURNS bigint LANGUAGE sql VOLATILE AS
    $$ SELECT now FROM agentd.test_clock $$`;
