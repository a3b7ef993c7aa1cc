import { HELD_BY_ACKED, HELD_BY_DEAD_LETTER } from '../../protocol/work-tools.ts';
import type { LeaseEnd } from '../gates/lease-machine.ts';

/**
 * What becomes of an item when its reaction is over. `put_back`: into our own queue, after a
 * backoff. `revisit`: it is in somebody else's hands, to be looked at again after a ttl.
 */
export type Disposal = 'finish' | 'put_back' | 'revisit';

export function disposalOf(facts: {
  /** How the lease ended; null without one. */
  readonly lease: LeaseEnd | null;
  /** The ledger chose the item, and will choose again. */
  readonly pulled: boolean;
  readonly draining: boolean;
}): Disposal {
  const { lease, pulled, draining } = facts;
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
    case undefined:
      return 'finish';
  }
}
