import type { ClientBase } from 'pg';
import type { ClaimedWork, ClaimNextRequest, LedgerPolicy } from '../ledger.ts';
import { type Lane, type Lanes, pickNext } from '../queue-order.ts';
import { itemOf } from '../rows.ts';
import { claimChosen } from '../work-operations.ts';
import { PRIORITY_RANK, type WorkItem } from '../work-table.ts';
import { type ItemRow, type LaneRow, lanesInTurn, lockHeads } from './statements.ts';
import type { PostgresWorkTable } from './work-table.ts';

/** A lane whose oldest free items this transaction has locked. */
interface LockedLane extends Lane {
  readonly priority: number;
  readonly waiting: WorkItem[];
}

/** Items locked for one batch at most; more is left for the next. */
const MOST_ITEMS = 512;
const MOST_LANES = 256;

/**
 * The front of the queue, locked by this transaction, from which the requests of a batch are then
 * served in memory. Other servers pass over what is locked and find the items behind it.
 */
export class LockedQueue implements Lanes<LockedLane> {
  private constructor(
    private lanes: readonly LockedLane[],
    private readonly policy: LedgerPolicy,
  ) {}

  static empty(policy: LedgerPolicy): LockedQueue {
    return new LockedQueue([], policy);
  }

  /** Locks enough for `requests`, which must all want the same kinds and tenants. */
  static async lock(
    client: ClientBase,
    requests: readonly ClaimNextRequest[],
    policy: LedgerPolicy,
  ): Promise<LockedQueue> {
    const [first] = requests;
    if (first === undefined) return LockedQueue.empty(policy);
    const wanted = Math.min(
      MOST_ITEMS,
      requests.reduce((sum, request) => sum + request.max, 0),
    );
    const { rows } = await client.query<LaneRow>(
      lanesInTurn(first.kinds, first.tenants, policy.tenantQuota, Math.min(MOST_LANES, wanted + 1)),
    );
    const lanes = rows.map((row) => ({ ...row, waiting: [] as WorkItem[] }));
    const queue = new LockedQueue(lanes, policy);
    if (lanes.length === 0) return queue;
    // More than an even share of each, then all of the demand if that was not enough.
    const share = Math.min(wanted, Math.ceil((2 * wanted) / lanes.length));
    await queue.fill(client, share);
    if (queue.size < wanted && share < wanted) await queue.fill(client, wanted);
    return queue;
  }

  /** Items locked and not handed out. */
  get size(): number {
    return this.lanes.reduce((sum, lane) => sum + lane.waiting.length, 0);
  }

  /** All locked rows, to be put into the batch's table. */
  get items(): readonly WorkItem[] {
    return this.lanes.flatMap((lane) => lane.waiting);
  }

  claim(table: PostgresWorkTable, request: ClaimNextRequest): readonly ClaimedWork[] {
    const quota = this.policy.tenantQuota;
    const atQuota = (tenant: string): boolean => quota !== null && table.inFlight(tenant) >= quota;
    const { kinds, tenants } = request;
    const claimed: ClaimedWork[] = [];
    while (claimed.length < request.max) {
      const item = pickNext(this, { kinds, tenants, atQuota });
      if (item === null) break;
      this.take(item);
      // A job before this one in the batch may have changed it.
      const current = table.byId(item.id);
      if (current === null || current.work.state.at !== 'ready') continue;
      const work = claimChosen(table, this.policy, current, request);
      if (work === null) continue;
      table.turns.set(work.tenant, work.fencingToken);
      claimed.push(work);
    }
    return claimed;
  }

  *inTurn(priority: number): Iterable<LockedLane> {
    for (const lane of this.lanes) if (lane.priority === priority) yield lane;
  }

  head(lane: LockedLane): WorkItem | null {
    return lane.waiting[0] ?? null;
  }

  emptied(): void {
    // Lanes are taken away by housekeeping, under a lock that submitters respect.
  }

  private take(item: WorkItem): void {
    const rank = PRIORITY_RANK[item.priority];
    for (const lane of this.lanes) {
      if (lane.tenant === item.tenant && lane.priority === rank && lane.kind === item.kind)
        lane.waiting.shift();
    }
    const served = this.lanes.filter((lane) => lane.tenant === item.tenant);
    this.lanes = [...this.lanes.filter((lane) => lane.tenant !== item.tenant), ...served];
  }

  private async fill(client: ClientBase, perLane: number): Promise<void> {
    const { rows } = await client.query<ItemRow>(
      lockHeads(
        this.lanes.map((lane) => lane.tenant),
        this.lanes.map((lane) => lane.priority),
        this.lanes.map((lane) => lane.kind),
        perLane,
      ),
    );
    for (const lane of this.lanes) lane.waiting.length = 0;
    const byName = new Map(this.lanes.map((lane) => [name(lane.tenant, lane.priority, lane.kind), lane]));
    for (const row of rows) byName.get(name(row.tenant, row.priority, row.kind))?.waiting.push(itemOf(row));
  }
}

function name(tenant: string, priority: number, kind: string): string {
  return `${priority} ${kind.length} ${kind} ${tenant}`;
}
