import type { Refusal } from './ledger.ts';

/** What the work machine speaks of: states, events, answers. Times are ms of the ledger's clock. */

export type WorkState =
  /** Waits for the items it depends on. */
  | { readonly at: 'submitted'; readonly waitingFor: number; readonly notBefore: number }
  | { readonly at: 'ready'; readonly notBefore: number }
  | ({
      readonly at: 'leased';
      readonly expiresAt: number;
      /** The holder has renewed since it last claimed, so it knows the lease id. */
      readonly renewed: boolean;
    } & Lease)
  | ({ readonly at: 'done'; readonly since: number; readonly result: string | null } & Lease)
  | { readonly at: 'dead_letter'; readonly since: number; readonly waitingFor: number }
  | { readonly at: 'cancelled'; readonly since: number };

export interface Lease {
  readonly leaseId: string;
  readonly holder: string;
  readonly fencing: number;
}

export interface Work {
  /** Grants that count so far. */
  readonly attempt: number;
  readonly maxAttempts: number;
  readonly lastError: string | null;
  readonly state: WorkState;
}

export type WorkEvent =
  | {
      readonly type: 'claim';
      readonly now: number;
      readonly ttlMs: number;
      /** The lease to grant if it is granted. */
      readonly lease: Lease;
      readonly overQuota: boolean;
    }
  | { readonly type: 'renew'; readonly now: number; readonly by: Presented; readonly ttlMs: number }
  | { readonly type: 'ack'; readonly now: number; readonly by: Presented; readonly result: string | null }
  | { readonly type: 'release'; readonly now: number; readonly by: Presented; readonly reason: string }
  /** The clock was looked at. */
  | { readonly type: 'tick'; readonly now: number }
  /** One of the items it depends on is done. */
  | { readonly type: 'dependency.done'; readonly now: number }
  /** One of the items it depends on was dropped and will never be done. */
  | { readonly type: 'dependency.dropped'; readonly now: number; readonly dependency: string }
  | { readonly type: 'requeue'; readonly now: number }
  | { readonly type: 'drop'; readonly now: number };

/** What the caller shows to prove that it holds the lease. */
export interface Presented {
  readonly leaseId: string;
  readonly holder: string;
}

export type Answer =
  | {
      readonly type: 'granted';
      readonly lease: Lease;
      readonly expiresInMs: number;
      readonly attempt: number;
      /** The holder got back a lease it already had. */
      readonly again: boolean;
    }
  | { readonly type: 'held'; readonly by: string; readonly retryAfterMs: number | null }
  | { readonly type: 'ok'; readonly expiresInMs: number | null }
  | { readonly type: 'refused'; readonly reason: Refusal };

export type WorkEffect =
  /** Items that depend on this one wait for one less. */
  | { readonly type: 'dependents.release' }
  /** Items that depend on this one can never become ready. */
  | { readonly type: 'dependents.abandon' }
  | { readonly type: 'lease.expired'; readonly lease: Lease };

export interface Step {
  readonly work: Work;
  readonly answer: Answer;
  readonly effects: readonly WorkEffect[];
}
