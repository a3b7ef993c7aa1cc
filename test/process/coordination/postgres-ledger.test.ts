import { afterAll, beforeAll, describe } from 'vitest';
import type { Ledger, LedgerPolicy } from '../../../supervisor/coordination/ledger.ts';
import { PostgresLedger } from '../../../supervisor/coordination/postgres/postgres-ledger.ts';
import type { LedgerFixture } from '../../helpers/ledger-conformance/harness.ts';
import { ledgerConformance } from '../../helpers/ledger-conformance.ts';
import { ask, POSTGRES_MISSING, type PostgresServer, startPostgres } from '../../helpers/postgres.ts';

if (POSTGRES_MISSING !== null) console.warn(POSTGRES_MISSING);

describe.skipIf(POSTGRES_MISSING !== null)('with a real PostgreSQL', () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server.stop());

  async function openFixture(policy: LedgerPolicy): Promise<LedgerFixture> {
    const url = await server.createDatabase();
    const opened: Ledger[] = [];
    const open = async (): Promise<Ledger> => {
      const ledger = await PostgresLedger.open({ url, policy });
      opened.push(ledger);
      return ledger;
    };
    const ledger = await open();
    let offset = 0;
    return {
      ledger,
      again: open,
      advance: async (ms) => {
        offset += ms;
        await ask(
          url,
          `CREATE OR REPLACE FUNCTION agentd.ledger_now() RETURNS bigint LANGUAGE sql VOLATILE AS
             $$ SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint + ${offset} $$`,
        );
      },
      dispose: async () => {
        for (const each of opened) await each.close();
      },
    };
  }

  ledgerConformance('PostgreSQL', openFixture);
});
