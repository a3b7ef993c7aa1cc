import type { Pool } from 'pg';
import { type LedgerStats, type ListFilter, MAX_PAGE, type WorkRecord } from '../ledger.ts';
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

  async list(filter: ListFilter): Promise<readonly WorkRecord[]> {
    // The state is one of a closed set, so it can be part of the text, which is what lets a
    // partial index serve it.
    const where = filter.state === null ? '' : `w.state = '${filter.state}' AND`;
    return await this.records(
      `agentd_list_${filter.state ?? 'all'}`,
      `SELECT w.*, agentd.ledger_now() AS now FROM agentd.work_item w
       WHERE ${where} w.id > $1 ORDER BY w.id LIMIT $2`,
      [filter.after, Math.min(filter.limit, MAX_PAGE)],
    );
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
