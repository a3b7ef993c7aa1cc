import type { Database } from 'better-sqlite3';
import { AgentdError } from '../../../protocol/errors.ts';

/** Numbered, append-only. A released migration is never edited: add the next number. */
const MIGRATIONS: readonly { readonly version: number; readonly sql: string }[] = [
  {
    version: 1,
    sql: `
      CREATE TABLE work_item (
        id INTEGER PRIMARY KEY,
        claim_key TEXT NOT NULL UNIQUE,
        item TEXT NOT NULL,
        kind TEXT NOT NULL,
        tenant TEXT NOT NULL,
        priority INTEGER NOT NULL CHECK (priority IN (0, 1, 2)),
        created_at INTEGER NOT NULL,
        enqueued_at INTEGER NOT NULL,
        state TEXT NOT NULL
          CHECK (state IN ('submitted', 'ready', 'leased', 'done', 'dead_letter', 'cancelled')),
        attempt INTEGER NOT NULL,
        max_attempts INTEGER NOT NULL,
        last_error TEXT,
        waiting_for INTEGER NOT NULL DEFAULT 0,
        not_before INTEGER NOT NULL DEFAULT 0,
        -- Set while a ready item may not be offered yet; cleared when its time has come.
        wake_at INTEGER,
        lease_id TEXT,
        holder TEXT,
        fencing INTEGER,
        expires_at INTEGER,
        renewed INTEGER NOT NULL DEFAULT 0,
        settled_at INTEGER,
        result TEXT
      );
      -- One range per lane, in queue order: picking is one seek, however much waits.
      CREATE INDEX work_queue ON work_item (tenant, priority, kind, enqueued_at, id)
        WHERE state = 'ready' AND wake_at IS NULL;
      CREATE INDEX work_wake ON work_item (wake_at) WHERE state = 'ready' AND wake_at IS NOT NULL;
      CREATE INDEX work_lease ON work_item (expires_at) WHERE state = 'leased';
      CREATE INDEX work_settled ON work_item (settled_at) WHERE state IN ('done', 'cancelled');
      CREATE INDEX work_dead ON work_item (id) WHERE state = 'dead_letter';

      CREATE TABLE work_dependency (
        on_id INTEGER NOT NULL,
        item_id INTEGER NOT NULL,
        PRIMARY KEY (on_id, item_id)
      ) WITHOUT ROWID;
      CREATE INDEX work_dependency_item ON work_dependency (item_id);

      -- A lane exists while its queue may hold something. turn: the last fencing token its tenant
      -- was granted, so the smallest turn is the tenant served longest ago.
      CREATE TABLE work_lane (
        tenant TEXT NOT NULL,
        priority INTEGER NOT NULL,
        kind TEXT NOT NULL,
        turn INTEGER NOT NULL,
        PRIMARY KEY (tenant, priority, kind)
      ) WITHOUT ROWID;
      CREATE INDEX work_lane_turn ON work_lane (priority, turn, tenant, kind);

      -- Sequences and counts, read and written once per transaction. The row of no tenant is the
      -- sum over all; the others say how many leases a tenant has. One table, so that it is one page.
      CREATE TABLE work_totals (
        tenant TEXT PRIMARY KEY,
        claimed INTEGER NOT NULL,
        pending INTEGER NOT NULL DEFAULT 0,
        done INTEGER NOT NULL DEFAULT 0,
        dead_letter INTEGER NOT NULL DEFAULT 0,
        last_id INTEGER NOT NULL DEFAULT 0,
        last_fencing INTEGER NOT NULL DEFAULT 0
      ) WITHOUT ROWID;
      INSERT INTO work_totals (tenant, claimed) VALUES ('', 0);
      CREATE TABLE work_clock (boot TEXT NOT NULL, offset_ms INTEGER NOT NULL);
    `,
  },
];

const COMPONENT = 'ledger';
/** The newest schema version this build knows. */
export const NEWEST_SQLITE_SCHEMA = MIGRATIONS.at(-1)?.version ?? 0;
const NEWEST = NEWEST_SQLITE_SCHEMA;

/**
 * Brings the database to the newest schema. Call inside BEGIN IMMEDIATE, so that of several
 * processes that start at once one migrates and the others find it done.
 *
 * @throws AgentdError LEDGER_SCHEMA_UNKNOWN naming the version when a newer build wrote it
 */
export function migrate(db: Database, name: string): void {
  db.exec(
    'CREATE TABLE IF NOT EXISTS agentd_schema (component TEXT PRIMARY KEY, version INTEGER NOT NULL) WITHOUT ROWID',
  );
  const current = versionOf(db) ?? 0;
  if (current > NEWEST || current < 0) {
    throw new AgentdError(
      'LEDGER_SCHEMA_UNKNOWN',
      `${name} has ledger schema version ${current}; this build knows versions up to ${NEWEST}`,
    );
  }
  for (const { version, sql } of MIGRATIONS) if (version > current) db.exec(sql);
  if (current === NEWEST) return;
  db.prepare(
    'INSERT INTO agentd_schema (component, version) VALUES (?, ?) ON CONFLICT (component) DO UPDATE SET version = excluded.version',
  ).run(COMPONENT, NEWEST);
}

/** The schema version of a ledger; null when the database holds none yet. Changes nothing. */
export function sqliteSchema(db: Database): number | null {
  const table = db.prepare("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'agentd_schema'");
  return table.get() === undefined ? null : versionOf(db);
}

function versionOf(db: Database): number | null {
  const row = db
    .prepare<[string], { version: number }>('SELECT version FROM agentd_schema WHERE component = ?')
    .get(COMPONENT);
  return row?.version ?? null;
}
