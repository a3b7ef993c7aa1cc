/**
 * The events of one route, keyed by URI so that the newest wins and memory is bounded by what is
 * watched. An entry goes idle → debouncing → waiting → delivering; an update for a URI that is
 * already being delivered is kept and causes exactly one later delivery (design, hard case H16).
 */

export type DeliveryState =
  /** `notBefore` is the end of a backoff, which further updates do not shorten. */
  | {
      readonly state: 'debouncing';
      readonly since: number;
      readonly readyAt: number;
      readonly notBefore: number;
    }
  | { readonly state: 'waiting'; readonly since: number }
  | { readonly state: 'delivering'; readonly since: number; readonly again: number | null };

/** The delivery table. */
export const TRANSITIONS = [
  {
    state: 'idle',
    event: 'take',
    next: 'delivering',
    effects: 'claim or launch',
    note: 'assigned to this instance',
  },
  { state: 'debouncing', event: 'take', next: 'delivering', effects: 'claim or launch', note: 'assigned' },
  { state: 'waiting', event: 'take', next: 'delivering', effects: 'claim or launch', note: 'assigned' },
  {
    state: 'idle',
    event: 'offer',
    next: 'debouncing',
    effects: '',
    note: 'waits for quiet, at most four debounce periods',
  },
  {
    state: 'debouncing',
    event: 'offer',
    next: 'debouncing',
    effects: 'coalesced',
    note: 'newest wins; the first time heard is kept',
  },
  { state: 'debouncing', event: 'due', next: 'waiting', effects: '', note: '' },
  { state: 'waiting', event: 'offer', next: 'waiting', effects: 'coalesced', note: '' },
  {
    state: 'waiting',
    event: 'begin',
    next: 'delivering',
    effects: 'claim or launch',
    note: 'after admission',
  },
  {
    state: 'delivering',
    event: 'offer',
    next: 'delivering',
    effects: 'coalesced when already marked',
    note: 'marked to run once more',
  },
  { state: 'delivering', event: 'settle', next: 'idle', effects: '', note: 'not marked' },
  {
    state: 'delivering',
    event: 'settle',
    next: 'debouncing',
    effects: '',
    note: 'marked: exactly one later delivery',
  },
  {
    state: 'delivering',
    event: 'retry',
    next: 'debouncing',
    effects: '',
    note: 'the claim could not be asked; re-offered later',
  },
] as const;

export interface RouteQueueOptions {
  readonly debounceMs: number;
  /** Most URIs that may wait at once. */
  readonly cap: () => number;
  readonly overflow: 'coalesce' | 'drop_oldest' | 'drop_newest' | 'block';
}

/** What became of an offered event. */
export type Offered =
  | { readonly kind: 'queued' }
  | { readonly kind: 'coalesced' }
  /** `uri` is the one that was dropped to stay within the cap. */
  | { readonly kind: 'dropped'; readonly uri: string }
  /** Held back: it enters when there is room. */
  | { readonly kind: 'blocked' };

export interface Waiting {
  readonly uri: string;
  /** Monotonic ms at which the update was first heard. */
  readonly since: number;
}

/** Debounce restarts with each update, but never holds one back longer than this many periods. */
const LONGEST_DEBOUNCE = 4;

export class RouteQueue {
  private readonly entries = new Map<string, DeliveryState>();
  private readonly ready = new Map<string, number>();
  private readonly debouncing = new Set<string>();
  private readonly held = new Map<string, number>();
  private delivering = 0;

  constructor(private options: RouteQueueOptions) {}

  configure(options: RouteQueueOptions): void {
    this.options = options;
  }

  /** Entries that wait: debouncing, waiting or held back. */
  get waiting(): number {
    return this.ready.size + this.debouncing.size + this.held.size;
  }

  get inflight(): number {
    return this.delivering;
  }

  /** URIs that wait or are in delivery. */
  uris(): string[] {
    return [...this.entries.keys(), ...this.held.keys()];
  }

  stateOf(uri: string): DeliveryState['state'] | 'idle' {
    return this.entries.get(uri)?.state ?? 'idle';
  }

  /**
   * Takes an update.
   *
   * @param now monotonic ms
   * @param heardAt monotonic ms at which the update was heard
   */
  offer(uri: string, now: number, heardAt: number = now): Offered {
    const entry = this.entries.get(uri);
    switch (entry?.state) {
      case 'debouncing':
        this.entries.set(uri, { ...entry, readyAt: this.readyAt(entry, now) });
        return { kind: 'coalesced' };
      case 'waiting':
        return { kind: 'coalesced' };
      case 'delivering':
        if (entry.again !== null) return { kind: 'coalesced' };
        this.entries.set(uri, { ...entry, again: heardAt });
        return { kind: 'queued' };
      case undefined:
        return this.enter(uri, now, heardAt);
    }
  }

  /** The oldest URI that may be delivered now, or null. */
  next(now: number): Waiting | null {
    this.ripen(now);
    for (const [uri, since] of this.ready) return { uri, since };
    return null;
  }

  /** Takes a waiting URI into delivery. */
  begin(uri: string): void {
    const since = this.ready.get(uri);
    if (since === undefined) throw new Error(`cannot begin ${uri}: it is ${this.stateOf(uri)}, not waiting`);
    this.ready.delete(uri);
    this.entries.set(uri, { state: 'delivering', since, again: null });
    this.delivering++;
  }

  /** Takes a URI into delivery whether or not it waits. It must not be in delivery already. */
  take(uri: string, now: number): void {
    if (this.stateOf(uri) === 'delivering') throw new Error(`cannot take ${uri}: it is in delivery`);
    const since = this.withdraw(uri) ?? now;
    this.entries.set(uri, { state: 'delivering', since, again: null });
    this.delivering++;
  }

  /** Takes a URI that waits out of the queue; when it was first heard, or null when it does not wait. */
  withdraw(uri: string): number | null {
    const since = this.entries.get(uri)?.since ?? this.held.get(uri) ?? null;
    if (since === null || this.stateOf(uri) === 'delivering') return null;
    this.entries.delete(uri);
    this.ready.delete(uri);
    this.debouncing.delete(uri);
    this.held.delete(uri);
    return since;
  }

  /** Ends a delivery. An update heard meanwhile is queued again; true when there was one. */
  settle(uri: string, now: number): boolean {
    const again = this.endDelivery(uri);
    if (again === null) {
      this.admitHeld(now);
      return false;
    }
    this.debounce(uri, again, now + this.options.debounceMs);
    return true;
  }

  /** Ends a delivery that could not be made; it is offered again at `notBefore` (monotonic ms). */
  retry(uri: string, notBefore: number): void {
    const entry = this.entries.get(uri);
    const since = entry?.since ?? notBefore;
    this.endDelivery(uri);
    this.debounce(uri, since, notBefore, notBefore);
  }

  /** When the next debouncing entry becomes ready, monotonic ms; null when none does. */
  nextDue(): number | null {
    let due: number | null = null;
    for (const uri of this.debouncing) {
      const entry = this.entries.get(uri);
      if (entry?.state === 'debouncing' && (due === null || entry.readyAt < due)) due = entry.readyAt;
    }
    return due;
  }

  /** When the oldest waiting event was heard, monotonic ms; null when nothing waits. */
  oldest(): number | null {
    let oldest: number | null = null;
    const consider = (since: number): void => {
      if (oldest === null || since < oldest) oldest = since;
    };
    for (const since of this.ready.values()) consider(since);
    for (const uri of this.debouncing) consider(this.entries.get(uri)?.since ?? Number.POSITIVE_INFINITY);
    for (const since of this.held.values()) consider(since);
    return oldest;
  }

  private enter(uri: string, now: number, heardAt: number): Offered {
    if (this.held.has(uri)) return { kind: 'coalesced' };
    if (this.ready.size + this.debouncing.size < this.options.cap()) {
      this.debounce(uri, heardAt, now + this.options.debounceMs);
      return { kind: 'queued' };
    }
    switch (this.options.overflow) {
      case 'drop_newest':
        return { kind: 'dropped', uri };
      case 'drop_oldest': {
        const oldest = this.dropOldest();
        this.debounce(uri, heardAt, now + this.options.debounceMs);
        return { kind: 'dropped', uri: oldest ?? uri };
      }
      case 'coalesce':
      case 'block':
        this.held.set(uri, heardAt);
        return { kind: 'blocked' };
    }
  }

  private dropOldest(): string | null {
    const [oldest] = this.ready.size > 0 ? this.ready.keys() : this.debouncing;
    if (oldest === undefined) return null;
    this.ready.delete(oldest);
    this.debouncing.delete(oldest);
    this.entries.delete(oldest);
    return oldest;
  }

  private debounce(uri: string, since: number, readyAt: number, notBefore = 0): void {
    this.entries.set(uri, { state: 'debouncing', since, readyAt, notBefore });
    this.debouncing.add(uri);
  }

  private readyAt(entry: { readonly since: number; readonly notBefore: number }, now: number): number {
    const { debounceMs } = this.options;
    return Math.max(entry.notBefore, Math.min(now + debounceMs, entry.since + LONGEST_DEBOUNCE * debounceMs));
  }

  private ripen(now: number): void {
    for (const uri of this.debouncing) {
      const entry = this.entries.get(uri);
      if (entry?.state !== 'debouncing' || entry.readyAt > now) continue;
      this.debouncing.delete(uri);
      this.entries.set(uri, { state: 'waiting', since: entry.since });
      this.ready.set(uri, entry.since);
    }
  }

  private endDelivery(uri: string): number | null {
    const entry = this.entries.get(uri);
    if (entry?.state !== 'delivering') {
      throw new Error(`cannot end the delivery of ${uri}: it is ${this.stateOf(uri)}`);
    }
    this.delivering--;
    this.entries.delete(uri);
    return entry.again;
  }

  private admitHeld(now: number): void {
    for (const [uri, since] of this.held) {
      if (this.ready.size + this.debouncing.size >= this.options.cap()) return;
      this.held.delete(uri);
      this.debounce(uri, since, now);
    }
  }
}
