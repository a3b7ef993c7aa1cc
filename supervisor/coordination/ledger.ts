import type { PRIORITIES } from '../../protocol/work-tools.ts';

/**
 * The ledger port: who may own an item. One adapter per database, one conformance suite for all
 * (test/helpers/ledger-conformance.ts).
 *
 * Rules every adapter keeps:
 * - a promise resolves only after what it reports is durable (invariant 11);
 * - expiry is judged by the ledger's clock alone: callers pass and receive durations;
 * - a lost claim or a refused settlement is an answer, never an exception;
 * - an exception is an AgentdError: LEDGER_UNAVAILABLE, LEDGER_OVERLOADED or LEDGER_SCHEMA_UNKNOWN.
 */
export interface Ledger {
  /** Claims the item with this key, creating it when the ledger has never seen it. */
  claim(request: ClaimRequest): Promise<ClaimAnswer>;
  /** Extends a live lease to `ttlMs` from now. */
  renew(request: RenewRequest): Promise<SettleAnswer>;
  /** Marks the item done and keeps its result. */
  ack(request: AckRequest): Promise<SettleAnswer>;
  /** Gives the item back. */
  release(request: ReleaseRequest): Promise<SettleAnswer>;
  submit(request: SubmitRequest): Promise<SubmitAnswer>;
  /** Claims up to `max` items the ledger chooses: by priority with ageing, fairly between tenants. */
  claimNext(request: ClaimNextRequest): Promise<readonly ClaimedWork[]>;
  stats(): Promise<LedgerStats>;
  find(workId: string): Promise<WorkRecord | null>;
  /** One page of items in the order they were created. Bounded: a page may be short and not the last. */
  list(filter: ListFilter): Promise<ListPage>;
  /** The items somebody could claim now, oldest first; for work://pending. */
  pending(limit: number): Promise<readonly WorkRecord[]>;
  /** Puts a dead letter back with its attempts reset. */
  requeue(workId: string): Promise<SettleAnswer>;
  /** Cancels an item that is not done. A holder loses its lease. */
  drop(workId: string): Promise<SettleAnswer>;
  /**
   * Housekeeping, bounded: expires leases, wakes delayed items, forgets what is past the dedupe
   * horizon. `more` says that another round would find work at once.
   */
  tend(): Promise<TendReport>;
  /** Calls `listener` (no arguments, coalesced) after the set of claimable items may have grown. */
  onPending(listener: () => void): () => void;
  /** Resolves when the database answers. @throws AgentdError LEDGER_UNAVAILABLE */
  ping(): Promise<void>;
  /** Waits for what was accepted, then closes. Idempotent. */
  close(): Promise<void>;
}

export type Priority = (typeof PRIORITIES)[number];

export interface ClaimRequest {
  /** The lookup key of the item. */
  readonly key: string;
  readonly item: string;
  /** Unique to a live process: the same holder asking again gets its own lease back. */
  readonly holder: string;
  readonly ttlMs: number;
}

export interface RenewRequest {
  readonly leaseId: string;
  readonly holder: string;
  readonly ttlMs: number;
}

export interface AckRequest {
  readonly leaseId: string;
  readonly holder: string;
  /** JSON text, or null. */
  readonly result: string | null;
}

export interface ReleaseRequest {
  readonly leaseId: string;
  readonly holder: string;
  /** Kept as the item's last error, except where the release consumes no attempt. */
  readonly reason: string;
}

export interface SubmitRequest {
  readonly key: string;
  readonly item: string;
  readonly kind: string;
  readonly tenant: string;
  readonly priority: Priority;
  /** Null: the ledger's default. */
  readonly maxAttempts: number | null;
  readonly delayMs: number;
  /** Work ids. */
  readonly dependsOn: readonly string[];
}

export interface ClaimNextRequest {
  readonly holder: string;
  readonly ttlMs: number;
  readonly max: number;
  /** Null: any. */
  readonly kinds: readonly string[] | null;
  readonly tenants: readonly string[] | null;
}

export interface Grant {
  readonly leaseId: string;
  readonly expiresInMs: number;
  /** Grows with every grant of an item. */
  readonly fencingToken: number;
  /** The attempt this grant begins, from 1. */
  readonly attempt: number;
}

export type ClaimAnswer =
  | ({ readonly granted: true } & Grant)
  | {
      readonly granted: false;
      readonly heldBy: string;
      /** When another try could succeed, if the ledger can tell, ms. */
      readonly retryAfterMs: number | null;
    };

export interface ClaimedWork extends Grant {
  readonly workId: string;
  readonly item: string;
  readonly kind: string;
  readonly tenant: string;
}

/** Why a settlement was refused. */
export const REFUSALS = ['unknown', 'not_holder', 'not_current', 'expired', 'done', 'not_dead'] as const;
export type Refusal = (typeof REFUSALS)[number];

export type SettleAnswer =
  | { readonly ok: true; readonly expiresInMs: number | null }
  | { readonly ok: false; readonly reason: Refusal };

export type SubmitAnswer =
  | { readonly accepted: true; readonly workId: string; readonly created: boolean }
  /** It names work the ledger does not know, so it could never become ready. */
  | { readonly accepted: false; readonly unknownDependency: string };

export interface LedgerStats {
  /** Submitted or ready: everything that waits. */
  readonly pending: number;
  readonly claimed: number;
  /** Of the oldest item that could be claimed now, 0 when there is none. */
  readonly oldestAgeMs: number;
  readonly deadLetter: number;
  readonly done: number;
}

export const WORK_STATES = ['submitted', 'ready', 'leased', 'done', 'dead_letter', 'cancelled'] as const;
export type WorkStateName = (typeof WORK_STATES)[number];

/** What may be told of an item. No lease id: whoever reads this cannot settle it. */
export interface WorkRecord {
  readonly workId: string;
  readonly item: string;
  readonly kind: string;
  readonly tenant: string;
  readonly priority: Priority;
  readonly state: WorkStateName;
  readonly attempt: number;
  readonly maxAttempts: number;
  readonly lastError: string | null;
  /** The holder while leased, and who settled it once done. */
  readonly holder: string | null;
  /** JSON text of the result once done. */
  readonly result: string | null;
  /** Age of the item since it was created, ms. */
  readonly ageMs: number;
}

export interface ListFilter {
  /** Null: any. */
  readonly state: WorkStateName | null;
  readonly limit: number;
  /** `next` of the previous page; 0 from the start. */
  readonly after: number;
}

export interface ListPage {
  readonly records: readonly WorkRecord[];
  /** Where the next page begins; null at the end. */
  readonly next: number | null;
}

export interface TendReport {
  readonly expired: number;
  readonly woken: number;
  readonly forgotten: number;
  readonly more: boolean;
}

/** What a ledger is configured with. */
export interface LedgerPolicy {
  /** For items submitted or claimed without a figure of their own. */
  readonly maxAttempts: number;
  /** How long a settled key is remembered, ms. */
  readonly dedupeHorizonMs: number;
  /** Most leases one tenant holds at a time; null: no limit. */
  readonly tenantQuota: number | null;
}

export const DEFAULT_POLICY: LedgerPolicy = {
  maxAttempts: 5,
  dedupeHorizonMs: 7 * 86_400_000,
  tenantQuota: null,
};

/** Longest answer of `list` and `pending`. */
export const MAX_PAGE = 1_000;
/** Items one `list` looks at for those in the state asked for, so that it cannot hold up claims. */
export const MAX_LOOKED_AT = 20_000;
