import type { Database, Statement } from 'better-sqlite3';
import type { WorkStateName } from '../ledger.ts';

/** What is counted over all items. */
export interface Counts {
  pending: number;
  claimed: number;
  done: number;
  dead_letter: number;
}

/** Which count a state belongs to. */
const COUNT: Readonly<Record<WorkStateName, keyof Counts | null>> = {
  submitted: 'pending',
  ready: 'pending',
  leased: 'claimed',
  done: 'done',
  dead_letter: 'dead_letter',
  cancelled: null,
};

interface TotalsRow extends Counts {
  last_id: number;
  last_fencing: number;
}

/**
 * Sequences and counts of the open transaction: read when first needed, changed in memory,
 * written once by `flush`.
 */
export class Totals {
  private row: TotalsRow | null = null;
  private dirty = false;
  private readonly leases = new Map<string, { value: number; readonly stored: number }>();
  private readonly sql;

  constructor(db: Database) {
    const read: Statement<[], TotalsRow> = db.prepare("SELECT * FROM work_totals WHERE tenant = ''");
    const write: Statement<[number, number, number, number, number, number]> = db.prepare(
      `UPDATE work_totals
       SET last_id = ?, last_fencing = ?, pending = ?, claimed = ?, done = ?, dead_letter = ?
       WHERE tenant = ''`,
    );
    const readLeases: Statement<[string], { claimed: number }> = db.prepare(
      'SELECT claimed FROM work_totals WHERE tenant = ?',
    );
    const writeLeases: Statement<[string, number]> = db.prepare(
      'INSERT INTO work_totals (tenant, claimed) VALUES (?, ?) ON CONFLICT (tenant) DO UPDATE SET claimed = excluded.claimed',
    );
    const dropLeases: Statement<[string]> = db.prepare('DELETE FROM work_totals WHERE tenant = ?');
    this.sql = { read, write, readLeases, writeLeases, dropLeases };
  }

  /** Forgets what an earlier transaction read: another process may have written since. */
  begin(): void {
    this.row = null;
    this.dirty = false;
    this.leases.clear();
  }

  flush(): void {
    if (this.dirty && this.row !== null) {
      const { last_id, last_fencing, pending, claimed, done, dead_letter } = this.row;
      this.sql.write.run(last_id, last_fencing, pending, claimed, done, dead_letter);
    }
    for (const [tenant, { value, stored }] of this.leases) {
      if (value === stored) continue;
      if (value === 0) this.sql.dropLeases.run(tenant);
      else this.sql.writeLeases.run(tenant, value);
    }
  }

  get lastFencing(): number {
    return this.current().last_fencing;
  }

  takeFencing(): void {
    this.changing().last_fencing += 1;
  }

  newId(): number {
    const row = this.changing();
    row.last_id += 1;
    return row.last_id;
  }

  inFlight(tenant: string): number {
    return this.leasesOf(tenant).value;
  }

  /** An item of `tenant` went from one state to another; null: it did not or does not exist. */
  move(tenant: string, from: WorkStateName | null, to: WorkStateName | null): void {
    if (from === to) return;
    const less = from === null ? null : COUNT[from];
    const more = to === null ? null : COUNT[to];
    if (less !== more) {
      const row = this.changing();
      if (less !== null) row[less] -= 1;
      if (more !== null) row[more] += 1;
    }
    if (from === 'leased') this.leasesOf(tenant).value -= 1;
    if (to === 'leased') this.leasesOf(tenant).value += 1;
  }

  private current(): TotalsRow {
    this.row ??= this.sql.read.get() ?? null;
    if (this.row === null) throw new Error('the ledger has lost its totals');
    return this.row;
  }

  private changing(): TotalsRow {
    this.dirty = true;
    return this.current();
  }

  private leasesOf(tenant: string): { value: number; readonly stored: number } {
    let entry = this.leases.get(tenant);
    if (entry === undefined) {
      const stored = this.sql.readLeases.get(tenant)?.claimed ?? 0;
      entry = { value: stored, stored };
      this.leases.set(tenant, entry);
    }
    return entry;
  }
}
