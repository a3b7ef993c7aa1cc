import { CHANGING, changingValues, type Row } from '../rows.ts';
import { PRIORITY_RANK, type WorkItem } from '../work-table.ts';

/** The statements every transaction is made of. Named, so that each connection parses them once. */

const FIXED: readonly (readonly [name: string, type: string])[] = [
  ['id', 'bigint'],
  ['claim_key', 'text'],
  ['item', 'text'],
  ['kind', 'text'],
  ['tenant', 'text'],
  ['priority', 'smallint'],
  ['created_at', 'bigint'],
  ['enqueued_at', 'bigint'],
];
const TYPES: Readonly<Record<(typeof CHANGING)[number], string>> = {
  state: 'text',
  attempt: 'integer',
  max_attempts: 'integer',
  last_error: 'text',
  waiting_for: 'integer',
  not_before: 'bigint',
  wake_at: 'bigint',
  lease_id: 'text',
  holder: 'text',
  fencing: 'bigint',
  expires_at: 'bigint',
  renewed: 'smallint',
  settled_at: 'bigint',
  result: 'text',
};
const MUTABLE = CHANGING.map((name) => [name, TYPES[name]] as const);

/** A statement ready to be sent. */
export interface Statement {
  readonly name: string;
  readonly text: string;
  readonly values: unknown[];
}

function make(name: string, text: string): (...values: unknown[]) => Statement {
  return (...values) => ({ name: `agentd_${name}`, text, values });
}

/** The rows with these keys or ids, locked in the order of their ids so that batches cannot deadlock. */
export const lockItems = make(
  'lock_items',
  `SELECT * FROM agentd.work_item WHERE claim_key = ANY($1::text[]) OR id = ANY($2::bigint[])
   ORDER BY id FOR UPDATE`,
);

/** After the locks: the time, fresh numbers, and who depends on the locked rows. */
export const reserve = make(
  'reserve',
  `SELECT agentd.ledger_now() AS now,
     ARRAY(SELECT nextval('agentd.work_id') FROM generate_series(1, $1::int))::text[] AS ids,
     ARRAY(SELECT nextval('agentd.work_fencing') FROM generate_series(1, $2::int))::text[] AS fencings,
     (SELECT json_agg(json_build_array(on_id, item_id)) FROM agentd.work_dependency
      WHERE on_id = ANY($3::bigint[])) AS edges`,
);
export interface Reserved {
  readonly now: number;
  readonly ids: readonly string[];
  readonly fencings: readonly string[];
  readonly edges: readonly (readonly [on: number, item: number])[] | null;
}

/** Leases of each tenant, counted no further than the quota. */
export const countLeases = make(
  'count_leases',
  `SELECT t.tenant, (SELECT count(*) FROM (
       SELECT 1 FROM agentd.work_item w WHERE w.state = 'leased' AND w.tenant = t.tenant LIMIT $2
     ) AS held) AS leases
   FROM unnest($1::text[]) AS t(tenant)`,
);

/**
 * Something in the lane `l`. A scalar subquery on purpose: EXISTS would be planned as a join over
 * everything that waits.
 */
export const LANE_HEAD = `SELECT 1 FROM agentd.work_item w WHERE w.state = 'ready' AND w.wake_at IS NULL
  AND w.tenant = l.tenant AND w.priority = l.priority AND w.kind = l.kind
  ORDER BY w.enqueued_at, w.id LIMIT 1`;

/**
 * Lanes with something to claim whose tenant is below the quota $3, in turn order, the first $4 of
 * each priority.
 */
export const lanesInTurn = make(
  'lanes_in_turn',
  [0, 1, 2]
    .map(
      (priority) => `(
    SELECT l.priority, l.tenant, l.kind FROM agentd.work_lane l
    WHERE l.priority = ${priority}
      AND ($1::text[] IS NULL OR l.kind = ANY($1)) AND ($2::text[] IS NULL OR l.tenant = ANY($2))
      AND ($3::int IS NULL OR (SELECT count(*) FROM (SELECT 1 FROM agentd.work_item w
        WHERE w.state = 'leased' AND w.tenant = l.tenant LIMIT $3) AS held) < $3)
      AND (${LANE_HEAD}) IS NOT NULL
    ORDER BY l.turn, l.tenant, l.kind LIMIT $4)`,
    )
    .join(' UNION ALL '),
);
export interface LaneRow {
  readonly priority: number;
  readonly tenant: string;
  readonly kind: string;
}

/** The oldest $4 free items of each lane, locked; what another server is granting is passed over. */
export const lockHeads = make(
  'lock_heads',
  `SELECT h.* FROM unnest($1::text[], $2::smallint[], $3::text[]) AS l(tenant, priority, kind)
   CROSS JOIN LATERAL (
     SELECT * FROM agentd.work_item w
     WHERE w.state = 'ready' AND w.wake_at IS NULL
       AND w.tenant = l.tenant AND w.priority = l.priority AND w.kind = l.kind
     ORDER BY w.enqueued_at, w.id LIMIT $4 FOR UPDATE SKIP LOCKED
   ) AS h`,
);

/** The tenants that were served go to the end of the turn order; a lane in use elsewhere is left alone. */
export const serve = make(
  'serve',
  `UPDATE agentd.work_lane l SET turn = s.turn
   FROM unnest($1::text[], $2::bigint[]) AS s(tenant, turn)
   WHERE l.tenant = s.tenant AND (l.tenant, l.priority, l.kind) IN (
     SELECT tenant, priority, kind FROM agentd.work_lane WHERE tenant = ANY($1) FOR NO KEY UPDATE SKIP LOCKED)`,
);

export const removeItems = make('remove_items', 'DELETE FROM agentd.work_item WHERE id = ANY($1::bigint[])');
export const removeEdgesOf = make(
  'remove_edges_of',
  'DELETE FROM agentd.work_dependency WHERE item_id = ANY($1::bigint[])',
);
export const cutEdges = make(
  'cut_edges',
  'DELETE FROM agentd.work_dependency WHERE on_id = ANY($1::bigint[])',
);
export const addEdges = make(
  'add_edges',
  'INSERT INTO agentd.work_dependency (on_id, item_id) SELECT * FROM unnest($1::bigint[], $2::bigint[])',
);

const INSERT_COLUMNS = [...FIXED, ...MUTABLE];
const insert = make(
  'insert_items',
  `INSERT INTO agentd.work_item (${INSERT_COLUMNS.map(([name]) => name).join(', ')})
   SELECT * FROM unnest(${INSERT_COLUMNS.map(([, type], index) => `$${index + 1}::${type}[]`).join(', ')})
   ON CONFLICT (claim_key) DO NOTHING`,
);
/** Adds items, in the order of their keys: two servers with the same keys wait, they do not deadlock. */
export function insertItems(items: readonly WorkItem[], now: number): Statement {
  const ordered = [...items].sort((one, other) => (one.key < other.key ? -1 : 1));
  const rows = ordered.map((item) => {
    const { id, key, kind, tenant, priority, createdAt, enqueuedAt } = item;
    const fixed = [id, key, item.item, kind, tenant, PRIORITY_RANK[priority], createdAt, enqueuedAt];
    return [...fixed, ...changingValues(item.work, now)];
  });
  return insert(...columns(rows, INSERT_COLUMNS.length));
}

const UPDATE_COLUMNS = [['id', 'bigint'] as const, ...MUTABLE];
const update = make(
  'update_items',
  `UPDATE agentd.work_item w SET ${CHANGING.map((name) => `${name} = u.${name}`).join(', ')}
   FROM unnest(${UPDATE_COLUMNS.map(([, type], index) => `$${index + 1}::${type}[]`).join(', ')})
     AS u(${UPDATE_COLUMNS.map(([name]) => name).join(', ')})
   WHERE w.id = u.id`,
);
export function updateItems(items: readonly WorkItem[], now: number): Statement {
  const rows = items.map((item) => [item.id, ...changingValues(item.work, now)]);
  return update(...columns(rows, UPDATE_COLUMNS.length));
}

function columns(rows: readonly (readonly unknown[])[], width: number): unknown[][] {
  return Array.from({ length: width }, (_, index) => rows.map((row) => row[index]));
}

/** Shares the lanes, so that housekeeping cannot take one away before this is committed. */
export const keepLanes = make(
  'keep_lanes',
  `SELECT 1 FROM agentd.work_lane
   WHERE (tenant, priority, kind) IN (SELECT * FROM unnest($1::text[], $2::smallint[], $3::text[]))
   ORDER BY tenant, priority, kind FOR KEY SHARE`,
);
/** A tenant keeps its place in the order when it opens another lane. */
export const openLanes = make(
  'open_lanes',
  `INSERT INTO agentd.work_lane (tenant, priority, kind, turn)
   SELECT o.tenant, o.priority, o.kind, coalesce(
     (SELECT max(l.turn) FROM agentd.work_lane l WHERE l.tenant = o.tenant),
     (SELECT last_value FROM agentd.work_fencing))
   FROM unnest($1::text[], $2::smallint[], $3::text[]) AS o(tenant, priority, kind)
   ORDER BY o.tenant, o.priority, o.kind
   ON CONFLICT DO NOTHING`,
);

export const addTotals = make(
  'add_totals',
  `UPDATE agentd.work_total SET pending = pending + $2, claimed = claimed + $3, done = done + $4,
     dead_letter = dead_letter + $5
   WHERE slot = $1`,
);

export type ItemRow = Row;
