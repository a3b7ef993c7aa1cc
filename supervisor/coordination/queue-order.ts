import { PRIORITIES } from '../../protocol/work-tools.ts';
import { AGEING_MS, PRIORITY_RANK, type WorkItem } from './work-table.ts';

/** One queue: the waiting items of a tenant, a priority and a kind. */
export interface Lane {
  readonly tenant: string;
  readonly kind: string;
}

/** Where items wait, as an adapter sees it inside a transaction. */
export interface Lanes<L extends Lane> {
  /**
   * The lanes of a priority (0 is the most urgent) in turn order: the tenant served longest ago
   * first, all lanes of one tenant together.
   */
  inTurn(priority: number): Iterable<L>;
  /** The oldest item of a lane that may be claimed now. */
  head(lane: L, priority: number): WorkItem | null;
  /** Told of lanes found without a head, once `inTurn` is no longer being read. */
  emptied(lane: L, priority: number): void;
}

export interface Wanted {
  /** Null: any. */
  readonly kinds: readonly string[] | null;
  readonly tenants: readonly string[] | null;
  readonly atQuota: (tenant: string) => boolean;
}

/**
 * Which item is handed out next: within a priority the oldest of the tenant whose turn it is, and
 * between priorities the one that has waited longest, counting each priority's head start
 * (AGEING_MS). The cost grows with the lanes looked at, never with the items that wait.
 */
export function pickNext<L extends Lane>(lanes: Lanes<L>, wanted: Wanted): WorkItem | null {
  let best: WorkItem | null = null;
  for (const priority of PRIORITIES) {
    const head = firstInTurn(lanes, PRIORITY_RANK[priority], wanted);
    if (head !== null && (best === null || startOf(head) < startOf(best))) best = head;
  }
  return best;
}

function firstInTurn<L extends Lane>(lanes: Lanes<L>, priority: number, wanted: Wanted): WorkItem | null {
  let best: WorkItem | null = null;
  const empty: L[] = [];
  for (const lane of lanes.inTurn(priority)) {
    if (best !== null && lane.tenant !== best.tenant) break;
    if (wanted.tenants !== null && !wanted.tenants.includes(lane.tenant)) continue;
    if (wanted.kinds !== null && !wanted.kinds.includes(lane.kind)) continue;
    if (wanted.atQuota(lane.tenant)) continue;
    const head = lanes.head(lane, priority);
    if (head === null) empty.push(lane);
    else if (best === null || isBefore(head, best)) best = head;
  }
  for (const lane of empty) lanes.emptied(lane, priority);
  return best;
}

function isBefore(one: WorkItem, other: WorkItem): boolean {
  return one.enqueuedAt < other.enqueuedAt || (one.enqueuedAt === other.enqueuedAt && one.id < other.id);
}

function startOf(item: WorkItem): number {
  return item.enqueuedAt + AGEING_MS[item.priority];
}
