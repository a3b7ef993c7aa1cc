import type { RouteConfig, StandbyConfig } from '../config/config.ts';
import type { Grant } from '../gates/lease-keeper.ts';
import type { Clock } from '../reactor/clock.ts';

/** One item the ledger chose for us, already leased. */
export interface PulledItem {
  readonly uri: string;
  readonly claimKey: string;
  readonly grant: Grant;
}

export interface StandbyDeps {
  readonly clock: Clock;
  readonly freeSlots: () => number;
  /** Takes up to `max` items; null when the server does not offer that. Never rejects. */
  readonly claimNext: (max: number) => Promise<readonly PulledItem[] | null>;
  /** URIs of items that wait, for servers without claim_next. Never rejects. */
  readonly pending: () => Promise<readonly string[]>;
  /** Runs an item whose lease is ours. */
  readonly adopt: (item: PulledItem) => void;
  /** Claims and runs an item like any other; false when it cannot be taken now. */
  readonly race: (uri: string) => boolean;
  /** The answer to a pull has come: there may be room for another. */
  readonly pulled: () => void;
}

/** Nothing is notified of a lease that runs out, so the ledger is asked this often anyway, ms. */
const LOOK_EVERY_MS = 5_000;

/**
 * A standby member: pulls work whenever it has free slots, instead of being told of it. The ledger
 * decides what is most urgent; children and model connections are warm.
 */
export class Standby {
  private pulling = false;
  /** There may be something to pull. */
  private wanted = true;
  private lastLook = Number.NEGATIVE_INFINITY;

  constructor(private readonly deps: StandbyDeps) {}

  /** `work://pending` has changed. */
  notified(): void {
    this.wanted = true;
  }

  /** After each batch of events, and on each tick: pulls if there is room and reason to. */
  pump(): void {
    const now = this.deps.clock.now();
    if (now - this.lastLook >= LOOK_EVERY_MS) this.wanted = true;
    const free = this.deps.freeSlots();
    if (!this.wanted || this.pulling || free <= 0) return;
    this.wanted = false;
    this.pulling = true;
    this.lastLook = now;
    void this.pull(free).then((took) => {
      this.pulling = false;
      // As much as was asked for: there may be more.
      if (took >= free) this.wanted = true;
      this.deps.pulled();
    });
  }

  private async pull(free: number): Promise<number> {
    const items = await this.deps.claimNext(free);
    if (items !== null) {
      for (const item of items) this.deps.adopt(item);
      return items.length;
    }
    let took = 0;
    for (const uri of await this.deps.pending()) {
      if (took >= free) break;
      if (this.deps.race(uri)) took++;
    }
    return took;
  }
}

const DEFAULT_MAX_INFLIGHT = 4;

/**
 * The route of a standby member that declares none: takes whatever it is given.
 *
 * @param source the server its items are read from
 */
export function standbyRoute(
  { assignFrom, ttlMs, renewFraction }: StandbyConfig,
  source: string,
): RouteConfig {
  return {
    name: 'standby',
    server: source,
    match: '**',
    disposition: { kind: 'spawn' },
    claim: { server: assignFrom.server, style: 'tool', ttlMs, renewFraction, key: 'run_id' },
    instruction: null,
    outputContract: null,
    shardKey: { kind: 'uri' },
    debounceMs: 0,
    maxInflight: DEFAULT_MAX_INFLIGHT,
    queueCap: null,
    overflow: 'coalesce',
    tools: null,
  };
}
