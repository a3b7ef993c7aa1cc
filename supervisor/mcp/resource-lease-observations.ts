import type { Clock } from '../reactor/clock.ts';
import { type LeaseVersion, type ResourceLease, statedRemaining } from './resource-lease-document.ts';

/** Entries kept, whatever peers send (invariant 8). */
const MAX_ENTRIES = 20_000;

/** A map that forgets its oldest entry rather than grow past a bound. */
export class BoundedMap<V> {
  private readonly entries = new Map<string, V>();

  constructor(private readonly most: number = MAX_ENTRIES) {}

  get(key: string): V | undefined {
    return this.entries.get(key);
  }

  set(key: string, value: V): void {
    this.entries.delete(key);
    this.entries.set(key, value);
    for (const oldest of this.entries.keys()) {
      if (this.entries.size <= this.most) return;
      this.entries.delete(oldest);
    }
  }

  delete(key: string): void {
    this.entries.delete(key);
  }
}

interface Observation {
  readonly holder: string;
  readonly version: LeaseVersion;
  /** Monotonic ms: unchanged until then, it is over. */
  readonly overAt: number;
}

/**
 * Leases of others, as they were first seen. Whether one is over is never judged by our wall clock:
 * a holder renews, and each renewal is a new version, so a version that stays for as long as its
 * lease could last at most has a holder that is gone. A forgotten observation only begins anew.
 */
export class ForeignLeases {
  private readonly seen: BoundedMap<Observation>;

  constructor(
    private readonly clock: Clock,
    most: number = MAX_ENTRIES,
  ) {
    this.seen = new BoundedMap(most);
  }

  /**
   * How long until a lease of somebody else is over if it is not renewed, ms: 0 when it is over, and
   * Infinity when it has no end.
   *
   * A remaining time of zero that the server states is its own judgement. Otherwise the same version
   * must have been there for the longer of `ttlMs` and the time it stated to have left, by our
   * monotonic clock. A lease that states no end has none.
   */
  overIn(place: string, lease: ResourceLease, ttlMs: number): number {
    const stated = lease.expires_in_ms ?? Number.POSITIVE_INFINITY;
    if (stated <= 0) return 0;
    const remaining = statedRemaining(lease, this.clock.wall());
    if (remaining === null) return Number.POSITIVE_INFINITY;
    const now = this.clock.now();
    const { holder, version } = lease;
    const before = this.seen.get(place);
    if (before !== undefined && before.version === version && before.holder === holder) {
      return Math.min(stated, Math.max(0, before.overAt - now));
    }
    const overAt = now + Math.max(ttlMs, remaining);
    this.seen.set(place, { holder, version, overAt });
    return Math.min(stated, overAt - now);
  }

  forget(place: string): void {
    this.seen.delete(place);
  }
}
