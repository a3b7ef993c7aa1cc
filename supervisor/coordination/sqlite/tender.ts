import type { Database, Statement } from 'better-sqlite3';
import type { LedgerPolicy, TendReport } from '../ledger.ts';
import { itemOf, type Row } from '../rows.ts';
import { tickOne } from '../work-operations.ts';
import type { SqliteWorkTable } from './work-table.ts';

interface LaneOfRow {
  readonly tenant: string;
  readonly priority: number;
  readonly kind: string;
}

/** Housekeeping: what time alone does to items. Every step is bounded and runs off an index. */
export class SqliteTender {
  private readonly sql;

  constructor(
    db: Database,
    private readonly table: SqliteWorkTable,
    private readonly policy: LedgerPolicy,
  ) {
    const due: Statement<{ now: number; horizon: number }, { due: number }> = db.prepare(
      `SELECT EXISTS (SELECT 1 FROM work_item WHERE state = 'leased' AND expires_at <= @now)
         OR EXISTS (SELECT 1 FROM work_item WHERE state = 'ready' AND wake_at IS NOT NULL AND wake_at <= @now)
         OR EXISTS (SELECT 1 FROM work_item WHERE state IN ('done', 'cancelled') AND settled_at <= @horizon)
         AS due`,
    );
    const expired: Statement<[number, number], Row> = db.prepare(
      `SELECT * FROM work_item WHERE state = 'leased' AND expires_at <= ? ORDER BY expires_at LIMIT ?`,
    );
    const wake: Statement<[number, number], LaneOfRow> = db.prepare(
      `UPDATE work_item SET wake_at = NULL WHERE id IN (
         SELECT id FROM work_item WHERE state = 'ready' AND wake_at IS NOT NULL AND wake_at <= ?
         ORDER BY wake_at LIMIT ?
       ) RETURNING tenant, priority, kind`,
    );
    const past: Statement<[number, number], Row> = db.prepare(
      `SELECT * FROM work_item WHERE state IN ('done', 'cancelled') AND settled_at <= ? ORDER BY settled_at LIMIT ?`,
    );
    this.sql = { due, expired, wake, past };
  }

  /** Whether `tend` would find anything; reads only. */
  due(now: number): boolean {
    return this.sql.due.get({ now, horizon: now - this.policy.dedupeHorizonMs })?.due === 1;
  }

  /** @param limit most items of each sort */
  tend(limit: number): TendReport {
    const { now } = this.table;
    const expired = this.sql.expired.all(now, limit);
    for (const row of expired) tickOne(this.table, itemOf(row));
    const woken = this.sql.wake.all(now, limit);
    for (const { tenant, priority, kind } of woken) this.table.open(tenant, priority, kind);
    const past = this.sql.past.all(now - this.policy.dedupeHorizonMs, limit);
    for (const row of past) this.table.remove(itemOf(row));
    return {
      expired: expired.length,
      woken: woken.length,
      forgotten: past.length,
      more: Math.max(expired.length, woken.length, past.length) === limit,
    };
  }
}
