/** What the lease machine works on: states that carry their data, events, effects. */

export type LeaseState =
  | { readonly state: 'offered'; readonly attempt: number; readonly abandoned: boolean }
  | ({ readonly state: 'claimed' } & Held)
  | ({ readonly state: 'acking'; readonly attempt: number; readonly result: string } & Held)
  | ({ readonly state: 'releasing'; readonly attempt: number; readonly reason: string } & Held)
  | { readonly state: 'ended'; readonly end: LeaseEnd };

export interface Held {
  readonly leaseId: string;
  /** Our estimate, monotonic ms; never later than the ledger's own. */
  readonly expiresAt: number;
}

export type LeaseEnd =
  | { readonly kind: 'acked' }
  | { readonly kind: 'released'; readonly reason: string }
  /** Held, then lost: it ran out, or the ledger said it is no longer ours. */
  | { readonly kind: 'expired'; readonly why: string }
  /** Never ours: somebody else holds it, or it is done or given up. `retryAfterMs`: until another try could succeed. */
  | { readonly kind: 'lost'; readonly heldBy: string; readonly retryAfterMs?: number | undefined }
  /** Never ours: the ledger could not be asked. To be offered again later. */
  | { readonly kind: 'unasked'; readonly error: string };

export type LeaseEvent =
  | {
      readonly type: 'granted';
      readonly leaseId: string;
      readonly expiresInMs: number;
      readonly sentAt: number;
    }
  | { readonly type: 'denied'; readonly heldBy: string; readonly retryAfterMs?: number | undefined }
  | { readonly type: 'claim_failed'; readonly error: string }
  | { readonly type: 'retry_due' }
  | { readonly type: 'abandon' }
  | { readonly type: 'renew_due' }
  | { readonly type: 'renewed'; readonly expiresInMs: number; readonly sentAt: number }
  | { readonly type: 'renew_refused' }
  | { readonly type: 'renew_failed'; readonly error: string }
  | { readonly type: 'expiry_due' }
  | { readonly type: 'completed'; readonly result: string }
  | { readonly type: 'not_completed'; readonly reason: string }
  | { readonly type: 'acked' }
  | { readonly type: 'ack_refused' }
  | { readonly type: 'ack_failed'; readonly error: string }
  | { readonly type: 'released' }
  | { readonly type: 'release_refused' }
  | { readonly type: 'release_failed'; readonly error: string };

export type LeaseEffect =
  | { readonly type: 'claim' }
  | { readonly type: 'renew'; readonly leaseId: string }
  | { readonly type: 'ack'; readonly leaseId: string; readonly result: string }
  | { readonly type: 'release'; readonly leaseId: string; readonly reason: string }
  /** The item is ours: start the work. */
  | { readonly type: 'start' }
  /** Stop the work; the process group must be gone within `withinMs`. */
  | { readonly type: 'stop'; readonly cause: 'lease_lost' | 'lease_expired'; readonly withinMs: number }
  | { readonly type: 'timer'; readonly name: 'retry' | 'renew' | 'expiry'; readonly at: number }
  | { readonly type: 'ended'; readonly end: LeaseEnd };

export interface LeaseStep {
  readonly state: LeaseState;
  readonly effects: readonly LeaseEffect[];
}

export interface LeaseRules {
  readonly ttlMs: number;
  readonly renewFraction: number;
  /** How often a claim that could not be asked is tried before the item is put back. */
  readonly claimAttempts: number;
  /** Pause before try n+1, ms. */
  readonly retryMs: (attempt: number) => number;
}
