import type { Database, Statement } from 'better-sqlite3';
import {
  type LedgerStats,
  type ListFilter,
  type ListPage,
  MAX_LOOKED_AT,
  MAX_PAGE,
  type WorkRecord,
  type WorkStateName,
} from '../ledger.ts';
import { itemOf, type Row } from '../rows.ts';
import { recordOf } from '../work-operations.ts';
import type { Counts } from './totals.ts';

/** The questions that change nothing. */
export class SqliteReader {
  private readonly sql;

  constructor(db: Database) {
    const counts: Statement<[], Counts> = db.prepare(
      "SELECT pending, claimed, done, dead_letter FROM work_totals WHERE tenant = ''",
    );
    const find: Statement<[string], Row> = db.prepare('SELECT * FROM work_item WHERE claim_key = ?');
    // One seek per lane: its head is its oldest.
    const oldest: Statement<[], { at: number | null }> = db.prepare(
      `SELECT min((SELECT w.enqueued_at FROM work_item w
         WHERE w.state = 'ready' AND w.wake_at IS NULL
           AND w.tenant = l.tenant AND w.priority = l.priority AND w.kind = l.kind
         ORDER BY w.enqueued_at, w.id LIMIT 1)) AS at
       FROM work_lane l`,
    );
    const lanes: Statement<[], { tenant: string; priority: number; kind: string }> = db.prepare(
      'SELECT tenant, priority, kind FROM work_lane ORDER BY priority, turn, tenant, kind',
    );
    const heads: Statement<[string, number, string, number], Row> = db.prepare(
      `SELECT * FROM work_item
       WHERE state = 'ready' AND wake_at IS NULL AND tenant = ? AND priority = ? AND kind = ?
       ORDER BY enqueued_at, id LIMIT ?`,
    );
    const list: Statement<
      { state: WorkStateName | null; after: number; limit: number; looked: number },
      Row
    > = db.prepare(
      `SELECT * FROM (SELECT * FROM work_item WHERE id > @after ORDER BY id LIMIT @looked)
       WHERE @state IS NULL OR state = @state ORDER BY id LIMIT @limit`,
    );
    const dead: Statement<[number, number], Row> = db.prepare(
      "SELECT * FROM work_item WHERE state = 'dead_letter' AND id > ? ORDER BY id LIMIT ?",
    );
    const endOfLook: Statement<[number, number], { id: number }> = db.prepare(
      'SELECT id FROM work_item WHERE id > ? ORDER BY id LIMIT 1 OFFSET ?',
    );
    this.sql = {
      counts,
      find,
      oldest,
      lanes,
      heads,
      list,
      dead,
      endOfLook,
    };
  }

  stats(now: number): LedgerStats {
    const at = this.sql.oldest.get()?.at ?? null;
    const counts = this.sql.counts.get();
    return {
      pending: counts?.pending ?? 0,
      claimed: counts?.claimed ?? 0,
      oldestAgeMs: at === null ? 0 : Math.max(0, now - at),
      deadLetter: counts?.dead_letter ?? 0,
      done: counts?.done ?? 0,
    };
  }

  find(key: string, now: number): WorkRecord | null {
    const row = this.sql.find.get(key);
    return row === undefined ? null : recordOf(itemOf(row), now);
  }

  list(filter: ListFilter, now: number): ListPage {
    const limit = Math.min(filter.limit, MAX_PAGE);
    const { state, after } = filter;
    const dead = state === 'dead_letter';
    const rows = dead
      ? this.sql.dead.all(after, limit)
      : this.sql.list.all({ state, after, limit, looked: MAX_LOOKED_AT });
    const records = rows.map((row) => recordOf(itemOf(row), now));
    if (rows.length === limit) return { records, next: rows.at(-1)?.id ?? null };
    if (dead) return { records, next: null };
    const end = this.sql.endOfLook.get(filter.after, MAX_LOOKED_AT - 1)?.id ?? null;
    return { records, next: end };
  }

  pending(limit: number, now: number): readonly WorkRecord[] {
    const most = Math.min(limit, MAX_PAGE);
    const rows: Row[] = [];
    for (const { tenant, priority, kind } of this.sql.lanes.all()) {
      if (rows.length >= most) break;
      rows.push(...this.sql.heads.all(tenant, priority, kind, most - rows.length));
    }
    return rows.map((row) => recordOf(itemOf(row), now));
  }
}
