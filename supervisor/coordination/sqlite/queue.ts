import type { Database, Statement } from 'better-sqlite3';
import { PRIORITIES } from '../../../protocol/work-tools.ts';
import type { ClaimedWork, ClaimNextRequest, LedgerPolicy } from '../ledger.ts';
import { claimChosen } from '../work-operations.ts';
import { AGEING_MS, PRIORITY_RANK, type WorkItem } from '../work-table.ts';
import { itemOf, type Row } from './rows.ts';
import type { SqliteWorkTable } from './work-table.ts';

interface Lane {
  readonly tenant: string;
  readonly kind: string;
  readonly turn: number;
}

/** Which item the ledger hands out next: one seek per lane looked at, none per item that waits. */
export class SqliteQueue {
  private readonly sql;

  constructor(
    db: Database,
    private readonly table: SqliteWorkTable,
    private readonly policy: LedgerPolicy,
  ) {
    const lanes: Statement<[number], Lane> = db.prepare(
      'SELECT tenant, kind, turn FROM work_lane WHERE priority = ? ORDER BY turn, tenant, kind',
    );
    const head: Statement<[string, number, string], Row> = db.prepare(
      `SELECT * FROM work_item
       WHERE state = 'ready' AND wake_at IS NULL AND tenant = ? AND priority = ? AND kind = ?
       ORDER BY enqueued_at, id LIMIT 1`,
    );
    this.sql = { lanes, head, serve: db.prepare('UPDATE work_lane SET turn = ? WHERE tenant = ?') };
  }

  claim(request: ClaimNextRequest): readonly ClaimedWork[] {
    const claimed: ClaimedWork[] = [];
    while (claimed.length < request.max) {
      const item = this.pick(request);
      if (item === null) break;
      const grant = claimChosen(this.table, this.policy, item, request);
      if (grant === null) break;
      this.sql.serve.run(grant.fencingToken, item.tenant);
      const { granted: _, ...rest } = grant;
      claimed.push({ ...rest, workId: item.key, item: item.item, kind: item.kind, tenant: item.tenant });
    }
    return claimed;
  }

  /** The best of each priority's next item, counting age against priority. */
  private pick(request: ClaimNextRequest): WorkItem | null {
    let best: WorkItem | null = null;
    for (const priority of PRIORITIES) {
      const head = this.nextOf(PRIORITY_RANK[priority], request);
      if (head !== null && (best === null || rank(head) < rank(best))) best = head;
    }
    return best;
  }

  /** The oldest item of the tenant served longest ago that has one and is below its quota. */
  private nextOf(priority: number, request: ClaimNextRequest): WorkItem | null {
    let best: WorkItem | null = null;
    const empty: Lane[] = [];
    for (const lane of this.sql.lanes.iterate(priority)) {
      // A tenant's lanes share its turn, so they come together: another tenant ends the search.
      if (best !== null && lane.tenant !== best.tenant) break;
      if (request.tenants !== null && !request.tenants.includes(lane.tenant)) continue;
      if (request.kinds !== null && !request.kinds.includes(lane.kind)) continue;
      const quota = this.policy.tenantQuota;
      if (quota !== null && this.table.inFlight(lane.tenant) >= quota) continue;
      const row = this.sql.head.get(lane.tenant, priority, lane.kind);
      if (row === undefined) empty.push(lane);
      else if (best === null || row.enqueued_at < best.enqueuedAt) best = itemOf(row);
    }
    for (const lane of empty) this.table.shut(lane.tenant, priority, lane.kind);
    return best;
  }
}

function rank(item: WorkItem): number {
  return item.enqueuedAt + AGEING_MS[item.priority];
}
