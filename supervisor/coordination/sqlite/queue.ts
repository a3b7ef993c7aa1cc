import type { Database, Statement } from 'better-sqlite3';
import type { ClaimedWork, ClaimNextRequest, LedgerPolicy } from '../ledger.ts';
import { type Lane, type Lanes, pickNext } from '../queue-order.ts';
import { itemOf, type Row } from '../rows.ts';
import { claimChosen } from '../work-operations.ts';
import type { WorkItem } from '../work-table.ts';
import type { SqliteWorkTable } from './work-table.ts';

/** Which item the ledger hands out next: one seek per lane looked at, none per item that waits. */
export class SqliteQueue implements Lanes<Lane> {
  private readonly sql;

  constructor(
    db: Database,
    private readonly table: SqliteWorkTable,
    private readonly policy: LedgerPolicy,
  ) {
    const lanes: Statement<[number], Lane> = db.prepare(
      'SELECT tenant, kind FROM work_lane WHERE priority = ? ORDER BY turn, tenant, kind',
    );
    const head: Statement<[string, number, string], Row> = db.prepare(
      `SELECT * FROM work_item
       WHERE state = 'ready' AND wake_at IS NULL AND tenant = ? AND priority = ? AND kind = ?
       ORDER BY enqueued_at, id LIMIT 1`,
    );
    this.sql = { lanes, head, serve: db.prepare('UPDATE work_lane SET turn = ? WHERE tenant = ?') };
  }

  claim(request: ClaimNextRequest): readonly ClaimedWork[] {
    const quota = this.policy.tenantQuota;
    const atQuota = (tenant: string): boolean => quota !== null && this.table.inFlight(tenant) >= quota;
    const { kinds, tenants } = request;
    const claimed: ClaimedWork[] = [];
    while (claimed.length < request.max) {
      const item = pickNext(this, { kinds, tenants, atQuota });
      const work = item === null ? null : claimChosen(this.table, this.policy, item, request);
      if (work === null) break;
      this.sql.serve.run(work.fencingToken, work.tenant);
      claimed.push(work);
    }
    return claimed;
  }

  inTurn(priority: number): Iterable<Lane> {
    return this.sql.lanes.iterate(priority);
  }

  head(lane: Lane, priority: number): WorkItem | null {
    const row = this.sql.head.get(lane.tenant, priority, lane.kind);
    return row === undefined ? null : itemOf(row);
  }

  emptied(lane: Lane, priority: number): void {
    this.table.shut(lane.tenant, priority, lane.kind);
  }
}
