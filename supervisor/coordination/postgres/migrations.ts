import type { ClientBase } from 'pg';
import { AgentdError } from '../../../protocol/errors.ts';

/** Numbered, append-only. A released migration is never edited: add the next number. */
const MIGRATIONS: readonly { readonly version: number; readonly sql: string }[] = [
  {
    version: 1,
    sql: `
      -- The ledger's clock, ms. Every expiry is judged by it and by nothing else.
      CREATE FUNCTION agentd.ledger_now() RETURNS bigint LANGUAGE sql VOLATILE AS
        $$ SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;

      CREATE SEQUENCE agentd.work_id;
      CREATE SEQUENCE agentd.work_fencing;

      CREATE TABLE agentd.work_item (
        id bigint PRIMARY KEY,
        claim_key text COLLATE "C" NOT NULL UNIQUE,
        item text NOT NULL,
        kind text COLLATE "C" NOT NULL,
        tenant text COLLATE "C" NOT NULL,
        priority smallint NOT NULL CHECK (priority IN (0, 1, 2)),
        created_at bigint NOT NULL,
        enqueued_at bigint NOT NULL,
        state text COLLATE "C" NOT NULL
          CHECK (state IN ('submitted', 'ready', 'leased', 'done', 'dead_letter', 'cancelled')),
        attempt integer NOT NULL,
        max_attempts integer NOT NULL,
        last_error text,
        waiting_for integer NOT NULL,
        not_before bigint NOT NULL,
        -- Set while a ready item may not be offered yet; cleared when its time has come.
        wake_at bigint,
        lease_id text,
        holder text,
        fencing bigint,
        expires_at bigint,
        renewed smallint NOT NULL,
        settled_at bigint,
        result text
      ) WITH (fillfactor = 80);
      CREATE INDEX work_queue ON agentd.work_item (tenant, priority, kind, enqueued_at, id)
        WHERE state = 'ready' AND wake_at IS NULL;
      CREATE INDEX work_wake ON agentd.work_item (wake_at) WHERE state = 'ready' AND wake_at IS NOT NULL;
      CREATE INDEX work_lease ON agentd.work_item (expires_at) WHERE state = 'leased';
      CREATE INDEX work_tenant_lease ON agentd.work_item (tenant) WHERE state = 'leased';
      CREATE INDEX work_settled ON agentd.work_item (settled_at) WHERE state IN ('done', 'cancelled');
      CREATE INDEX work_dead ON agentd.work_item (id) WHERE state = 'dead_letter';

      CREATE TABLE agentd.work_dependency (
        on_id bigint NOT NULL,
        item_id bigint NOT NULL,
        PRIMARY KEY (on_id, item_id)
      );
      CREATE INDEX work_dependency_item ON agentd.work_dependency (item_id);

      -- A lane exists while its queue may hold something. turn: the last fencing token its tenant
      -- was granted, so the smallest turn is the tenant served longest ago.
      CREATE TABLE agentd.work_lane (
        tenant text COLLATE "C" NOT NULL,
        priority smallint NOT NULL,
        kind text COLLATE "C" NOT NULL,
        turn bigint NOT NULL,
        PRIMARY KEY (tenant, priority, kind)
      ) WITH (fillfactor = 50);
      CREATE INDEX work_lane_turn ON agentd.work_lane (priority, turn, tenant, kind);

      -- Counts are the sums over the slots: servers side by side do not wait for one row.
      CREATE TABLE agentd.work_total (
        slot smallint PRIMARY KEY,
        pending bigint NOT NULL,
        claimed bigint NOT NULL,
        done bigint NOT NULL,
        dead_letter bigint NOT NULL
      ) WITH (fillfactor = 10);
      INSERT INTO agentd.work_total SELECT slot, 0, 0, 0, 0 FROM generate_series(0, 31) AS slot;
    `,
  },
];

const COMPONENT = 'ledger';
/** The newest schema version this build knows. */
export const NEWEST_POSTGRES_SCHEMA = MIGRATIONS.at(-1)?.version ?? 0;
const NEWEST = NEWEST_POSTGRES_SCHEMA;
/** Any number: the same for every build, so that servers that start at once take turns. */
export const MIGRATION_LOCK = 4_711_202_601;

/**
 * Brings the database to the newest schema, one server at a time.
 *
 * @throws AgentdError LEDGER_SCHEMA_UNKNOWN naming the version when a newer build wrote it
 */
export async function migrate(client: ClientBase, name: string): Promise<void> {
  await client.query('BEGIN');
  try {
    await client.query('SELECT pg_advisory_xact_lock($1)', [MIGRATION_LOCK]);
    const { rows: schemas } = await client.query("SELECT 1 FROM pg_namespace WHERE nspname = 'agentd'");
    // CREATE SCHEMA IF NOT EXISTS demands the right to create one even where it exists.
    if (schemas.length === 0) await client.query('CREATE SCHEMA agentd');
    await client.query(
      'CREATE TABLE IF NOT EXISTS agentd.agentd_schema (component text PRIMARY KEY, version integer NOT NULL)',
    );
    const current = (await versionOf(client)) ?? 0;
    if (current > NEWEST || current < 0) {
      throw new AgentdError(
        'LEDGER_SCHEMA_UNKNOWN',
        `${name} has ledger schema version ${current}; this build knows versions up to ${NEWEST}`,
      );
    }
    for (const { version, sql } of MIGRATIONS) if (version > current) await client.query(sql);
    await client.query(
      `INSERT INTO agentd.agentd_schema (component, version) VALUES ($1, $2)
       ON CONFLICT (component) DO UPDATE SET version = excluded.version`,
      [COMPONENT, NEWEST],
    );
    await client.query('COMMIT');
  } catch (error) {
    await client.query('ROLLBACK').catch(() => undefined);
    throw error;
  }
}

/** What is known of a ledger in a database without touching it. */
export interface PostgresSchema {
  /** Null when there is no ledger yet. */
  readonly version: number | null;
  /** Whether this user may use the ledger there is, or make one. */
  readonly allowed: boolean;
}

export async function postgresSchema(client: ClientBase): Promise<PostgresSchema> {
  // From the catalogues, which everybody may read.
  const { rows } = await client.query<{ present: boolean; usable: boolean; creatable: boolean }>(
    `SELECT count(c.oid) > 0 AS present,
            coalesce(bool_and(has_schema_privilege(n.oid, 'USAGE')
              AND has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'INSERT')
              AND has_table_privilege(c.oid, 'UPDATE')), false) AS usable,
            coalesce(bool_and(has_schema_privilege(n.oid, 'CREATE')),
                     has_database_privilege(current_database(), 'CREATE')) AS creatable
     FROM pg_namespace n LEFT JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = 'agentd_schema'
     WHERE n.nspname = 'agentd'`,
  );
  const [row] = rows;
  if (row?.present !== true) return { version: null, allowed: row?.creatable === true };
  return { version: row.usable ? await versionOf(client) : null, allowed: row.usable };
}

async function versionOf(client: ClientBase): Promise<number | null> {
  const { rows } = await client.query<{ version: number }>(
    'SELECT version FROM agentd.agentd_schema WHERE component = $1',
    [COMPONENT],
  );
  return rows[0]?.version ?? null;
}
