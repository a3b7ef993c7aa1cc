import type { Database, Statement } from 'better-sqlite3';
import {
  type LedgerStats,
  type ListFilter,
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

  constructor(private readonly db: Database) {
    const counts: Statement<[], Counts> = db.prepare(
      'SELECT pending, claimed, done, dead_letter FROM work_totals',
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
    this.sql = {
      counts,
      find,
      oldest,
      lanes,
      heads,
      lists: new Map<string, Statement<[number, number], Row>>(),
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

  list(filter: ListFilter, now: number): readonly WorkRecord[] {
    const rows = this.listing(filter.state).all(filter.after, Math.min(filter.limit, MAX_PAGE));
    return rows.map((row) => recordOf(itemOf(row), now));
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

  private listing(state: WorkStateName | null): Statement<[number, number], Row> {
    const known = this.sql.lists.get(state ?? '');
    if (known !== undefined) return known;
    // The state is one of a closed set, so it can be part of the text, which is what lets a
    // partial index serve it.
    const where = state === null ? '' : `state = '${state}' AND`;
    const made: Statement<[number, number], Row> = this.db.prepare(
      `SELECT * FROM work_item WHERE ${where} id > ? ORDER BY id LIMIT ?`,
    );
    this.sql.lists.set(state ?? '', made);
    return made;
  }
}
