import { HELD_BY_ACKED, HELD_BY_DEAD_LETTER } from '../../protocol/work-tools.ts';
import type { LeaseEnd } from '../gates/lease-model.ts';

/**
 * What becomes of an item when its reaction is over. `put_back`: into our own queue, after a
 * backoff. `revisit`: it is in somebody else's hands, to be looked at again after a ttl.
 */
export type Disposal = 'finish' | 'put_back' | 'revisit';

/** At least this share of the ttl lies between two looks, whatever the other side says. */
const SHORTEST_REVISIT = 0.1;

/**
 * How long to leave an item alone that somebody else has, ms: until its lease would be over where that
 * is known, else a ttl; and a little longer, so that not everybody asks at once. Never more than about
 * a ttl, since an item that is given back early is not announced either.
 *
 * @param random in [0, 1)
 */
export function revisitIn(ttlMs: number, lease: LeaseEnd | null, random: number): number {
  const hint = lease?.kind === 'lost' ? lease.retryAfterMs : undefined;
  if (hint === undefined) return ttlMs * (1 + random * 0.25);
  return Math.min(ttlMs, Math.max(ttlMs * SHORTEST_REVISIT, hint)) + ttlMs * random * 0.05;
}

export function disposalOf(facts: {
  /** How the lease ended; null without one. */
  readonly lease: LeaseEnd | null;
  /** The ledger chose the item, and will choose again. */
  readonly pulled: boolean;
  /** No child ever had the run. */
  readonly neverBegan: boolean;
  readonly draining: boolean;
}): Disposal {
  const { lease, pulled, neverBegan, draining } = facts;
  if (pulled) return 'finish';
  switch (lease?.kind) {
    case 'unasked':
    case 'released':
      return draining ? 'finish' : 'put_back';
    case 'lost':
      // What is done or given up needs nobody; what a living holder has may become free.
      return lease.heldBy === HELD_BY_ACKED || lease.heldBy === HELD_BY_DEAD_LETTER ? 'finish' : 'revisit';
    case 'expired':
      // Somebody else's by now, or nobody's.
      return 'revisit';
    case 'acked':
      return 'finish';
    case undefined:
      // An update that no child has seen has not been delivered.
      return neverBegan && !draining ? 'put_back' : 'finish';
  }
}
