import type { Pool } from 'pg';
import {
  type LedgerStats,
  type ListFilter,
  type ListPage,
  MAX_LOOKED_AT,
  MAX_PAGE,
  type WorkRecord,
} from '../ledger.ts';
import { itemOf } from '../rows.ts';
import { recordOf } from '../work-operations.ts';
import type { ItemRow } from './statements.ts';

type TimedRow = ItemRow & { readonly now: number };

const HEADS = `FROM agentd.work_lane l CROSS JOIN LATERAL (
    SELECT * FROM agentd.work_item w
    WHERE w.state = 'ready' AND w.wake_at IS NULL
      AND w.tenant = l.tenant AND w.priority = l.priority AND w.kind = l.kind
    ORDER BY w.enqueued_at, w.id LIMIT $1) AS h`;

/** The questions that change nothing. */
export class PostgresReader {
  constructor(private readonly pool: Pool) {}

  async stats(): Promise<LedgerStats> {
    const { rows } = await this.pool.query<Record<string, number | null>>({
      name: 'agentd_stats',
      text: `SELECT sum(pending)::bigint AS pending, sum(claimed)::bigint AS claimed, sum(done)::bigint AS done,
          sum(dead_letter)::bigint AS dead_letter, agentd.ledger_now() AS now,
          (SELECT min(h.enqueued_at) ${HEADS}) AS oldest
        FROM agentd.work_total`,
      values: [1],
    });
    const row = rows[0] ?? {};
    const oldest = row.oldest ?? null;
    return {
      pending: row.pending ?? 0,
      claimed: row.claimed ?? 0,
      oldestAgeMs: oldest === null ? 0 : Math.max(0, (row.now ?? 0) - oldest),
      deadLetter: row.dead_letter ?? 0,
      done: row.done ?? 0,
    };
  }

  async find(key: string): Promise<WorkRecord | null> {
    const [record] = await this.records(
      'agentd_find',
      'SELECT w.*, agentd.ledger_now() AS now FROM agentd.work_item w WHERE w.claim_key = $1',
      [key],
    );
    return record ?? null;
  }

  async list(filter: ListFilter): Promise<ListPage> {
    const limit = Math.min(filter.limit, MAX_PAGE);
    if (filter.state === 'dead_letter') return await this.dead(filter.after, limit);
    const { rows } = await this.pool.query<TimedRow>({
      name: 'agentd_list',
      text: `SELECT l.*, agentd.ledger_now() AS now
        FROM (SELECT * FROM agentd.work_item WHERE id > $2 ORDER BY id LIMIT $3) AS l
        WHERE $1::text IS NULL OR l.state = $1 ORDER BY l.id LIMIT $4`,
      values: [filter.state, filter.after, MAX_LOOKED_AT, limit],
    });
    const records = rows.map((row) => recordOf(itemOf(row), row.now));
    if (rows.length === limit) return { records, next: rows.at(-1)?.id ?? null };
    const end = await this.pool.query<{ id: number }>({
      name: 'agentd_list_end',
      text: 'SELECT id FROM agentd.work_item WHERE id > $1 ORDER BY id LIMIT 1 OFFSET $2',
      values: [filter.after, MAX_LOOKED_AT - 1],
    });
    return { records, next: end.rows[0]?.id ?? null };
  }

  private async dead(after: number, limit: number): Promise<ListPage> {
    const { rows } = await this.pool.query<TimedRow>({
      name: 'agentd_dead',
      text: `SELECT w.*, agentd.ledger_now() AS now FROM agentd.work_item w
        WHERE w.state = 'dead_letter' AND w.id > $1 ORDER BY w.id LIMIT $2`,
      values: [after, limit],
    });
    const records = rows.map((row) => recordOf(itemOf(row), row.now));
    return { records, next: rows.length === limit ? (rows.at(-1)?.id ?? null) : null };
  }

  async pending(limit: number): Promise<readonly WorkRecord[]> {
    return await this.records(
      'agentd_pending',
      `SELECT h.*, agentd.ledger_now() AS now ${HEADS}
       ORDER BY l.priority, l.turn, l.tenant, l.kind, h.enqueued_at, h.id LIMIT $1`,
      [Math.min(limit, MAX_PAGE)],
    );
  }

  private async records(name: string, text: string, values: unknown[]): Promise<readonly WorkRecord[]> {
    const { rows } = await this.pool.query<TimedRow>({ name, text, values });
    return rows.map((row) => recordOf(itemOf(row), row.now));
  }
}
