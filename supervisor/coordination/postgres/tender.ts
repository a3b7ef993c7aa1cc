import type { ClientBase, Pool } from 'pg';
import type { LedgerPolicy, TendReport } from '../ledger.ts';
import { itemOf } from '../rows.ts';
import { tickOne } from '../work-operations.ts';
import { inBatch } from './batch.ts';
import { type ItemRow, LANE_HEAD } from './statements.ts';
import type { PostgresWorkTable } from './work-table.ts';

/** Lanes looked at in one round of housekeeping. */
const MOST_LANES = 64;
/** With fewer lanes than this, empty ones cost too little to be taken away. */
const LANES_LEFT_ALONE = 256;

interface LaneName {
  readonly tenant: string;
  readonly priority: number;
  readonly kind: string;
}

/** Whether time has something to do; reads only. */
export async function isDue(pool: Pool, policy: LedgerPolicy): Promise<boolean> {
  const { rows } = await pool.query<{ due: boolean }>({
    name: 'agentd_due',
    text: `SELECT EXISTS (SELECT 1 FROM agentd.work_item WHERE state = 'leased' AND expires_at <= t.now)
        OR EXISTS (SELECT 1 FROM agentd.work_item
          WHERE state = 'ready' AND wake_at IS NOT NULL AND wake_at <= t.now)
        OR EXISTS (SELECT 1 FROM agentd.work_item
          WHERE state IN ('done', 'cancelled') AND settled_at <= t.now - $1::bigint) AS due
      FROM (SELECT agentd.ledger_now() AS now OFFSET 0) AS t`,
    values: [policy.dedupeHorizonMs],
  });
  return rows[0]?.due === true;
}

/**
 * Housekeeping: what time alone does to items. Servers side by side share it: each passes over
 * what another has locked.
 *
 * @param limit most items of each sort
 */
export async function tend(
  client: ClientBase,
  policy: LedgerPolicy,
  slot: number,
  limit: number,
): Promise<{ readonly value: TendReport; readonly readied: boolean }> {
  return await inBatch(client, slot, async (table) => {
    const expired = await client.query<ItemRow>(
      `SELECT * FROM agentd.work_item WHERE state = 'leased' AND expires_at <= $1
       ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED`,
      [table.now, limit],
    );
    for (const item of expired.rows.map(itemOf)) {
      table.hold(item);
      tickOne(table, item);
    }
    const woken = await wake(client, table, limit);
    const past = await client.query<ItemRow>(
      `SELECT * FROM agentd.work_item WHERE state IN ('done', 'cancelled') AND settled_at <= $1
       ORDER BY settled_at LIMIT $2 FOR UPDATE SKIP LOCKED`,
      [table.now - policy.dedupeHorizonMs, limit],
    );
    for (const item of past.rows.map(itemOf)) {
      table.hold(item);
      table.remove(item);
    }
    const counts = [expired.rows.length, woken, past.rows.length] as const;
    return {
      expired: counts[0],
      woken: counts[1],
      forgotten: counts[2],
      more: Math.max(...counts) === limit,
    };
  });
}

async function wake(client: ClientBase, table: PostgresWorkTable, limit: number): Promise<number> {
  const { rows } = await client.query<LaneName>(
    `UPDATE agentd.work_item SET wake_at = NULL WHERE id IN (
       SELECT id FROM agentd.work_item WHERE state = 'ready' AND wake_at IS NOT NULL AND wake_at <= $1
       ORDER BY wake_at LIMIT $2 FOR UPDATE SKIP LOCKED
     ) RETURNING tenant, priority, kind`,
    [table.now, limit],
  );
  for (const { tenant, priority, kind } of rows) table.open(tenant, priority, kind);
  return rows.length;
}

/**
 * Takes empty lanes away once there are many. A lane is looked at again after it is locked: a
 * submitter that shares it has committed by then, or waits and opens it anew.
 */
export async function pruneLanes(client: ClientBase): Promise<void> {
  const { rows } = await client.query<{ lanes: number }>('SELECT count(*) AS lanes FROM agentd.work_lane');
  if ((rows[0]?.lanes ?? 0) < LANES_LEFT_ALONE) return;
  const empty = `(${LANE_HEAD}) IS NULL`;
  await client.query('BEGIN');
  try {
    const locked = await client.query<LaneName>(
      `SELECT tenant, priority, kind FROM agentd.work_lane l WHERE ${empty}
       ORDER BY turn LIMIT ${MOST_LANES} FOR UPDATE SKIP LOCKED`,
    );
    await client.query(
      `DELETE FROM agentd.work_lane l
       WHERE (l.tenant, l.priority, l.kind) IN (SELECT * FROM unnest($1::text[], $2::smallint[], $3::text[]))
         AND ${empty}`,
      [
        locked.rows.map((lane) => lane.tenant),
        locked.rows.map((lane) => lane.priority),
        locked.rows.map((lane) => lane.kind),
      ],
    );
    await client.query('COMMIT');
  } catch (error) {
    await client.query('ROLLBACK').catch(() => undefined);
    throw error;
  }
}
