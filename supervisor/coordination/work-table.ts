import type { Priority } from './ledger.ts';
import type { Work } from './work-model.ts';

/** One work item as an adapter stores it. */
export interface WorkItem {
  readonly id: number;
  /** The claim key, which is also the work id people and callers use. */
  readonly key: string;
  readonly item: string;
  readonly kind: string;
  readonly tenant: string;
  readonly priority: Priority;
  /** Ledger clock, ms. */
  readonly createdAt: number;
  /** Its place in the queue: when it could first start. Kept over retries, ms. */
  readonly enqueuedAt: number;
  readonly work: Work;
}

/**
 * The items inside one open transaction. Operations are synchronous so that several requests
 * share a commit; an adapter over a network loads what a batch needs beforehand.
 */
export interface WorkTable {
  /** The ledger's clock, read once for the transaction, ms. */
  readonly now: number;
  byKey(key: string): WorkItem | null;
  byId(id: number): WorkItem | null;
  /** An id nobody else has or had. */
  newId(): number;
  /** The fencing token of the next grant, larger than every one before. */
  readonly nextFencing: number;
  /** Takes `nextFencing`. */
  takeFencing(): void;
  /** Adds an item that waits for the items with the ids `dependsOn`. */
  insert(item: WorkItem, dependsOn: readonly number[]): void;
  /** Stores the new state of an item. */
  save(before: WorkItem, after: Work): void;
  remove(item: WorkItem): void;
  /** Leases of a tenant that have not ended. */
  inFlight(tenant: string): number;
  /** Takes the edges to `id` away and says who had one. */
  takeDependents(id: number): readonly WorkItem[];
}

/** How much sooner than a `low` item of the same age the ledger picks one, see AGEING_MS. */
export const PRIORITY_RANK = { high: 0, normal: 1, low: 2 } as const satisfies Record<Priority, number>;

/**
 * The head start of each priority over the one that waits: an item is picked as if it had been
 * queued this much later, ms. So a `low` item goes before any `high` item queued more than two
 * minutes after it, and nothing starves however much is urgent.
 */
export const AGEING_MS: Readonly<Record<Priority, number>> = { high: 0, normal: 30_000, low: 120_000 };
