import { AgentdError, errorMessage } from '../../protocol/errors.ts';
import type { ResourceInfo } from '../mcp/peers.ts';
import type { Clock } from '../reactor/clock.ts';
import type { Timers } from '../reactor/timers.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { deliveryKey, type Heard } from './intake.ts';

/** One update whose shard depends on the resource, with what the resource turned out to be. */
export interface Looked extends Heard {
  readonly info: ResourceInfo | null;
}

export interface ShardLookupDeps {
  readonly clock: Clock;
  readonly timers: Timers;
  /** Looks at a resource; bounded, rejects when it cannot. */
  readonly describe: (server: string, uri: string) => Promise<ResourceInfo | null>;
  readonly found: (looked: Looked) => void;
  readonly log: Log;
  readonly metrics: Metrics;
  /** In [0, 1): spreads retries. */
  readonly random: () => number;
}

interface Entry {
  readonly heard: Heard;
  /** Looks that failed, in a row. */
  failures: number;
  phase: 'waiting' | 'looking' | 'pausing';
  /** Heard of again while it was being looked at. */
  again: boolean;
}

const AT_ONCE = 8;
const MOST_WAITING = 20_000;
const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 30_000;
/** A server that answers this often in a row that it cannot show the resource is believed. */
const BELIEVED_AFTER = 6;

/**
 * Reads resources whose shard key is in their metadata, before it can be said whose they are.
 *
 * A guess would be worse than waiting: replicas that guess differently both skip an item, or both
 * take it. So a look that fails is repeated until it succeeds. Only an item whose server keeps
 * answering that it cannot be read is dropped, since nobody could work on it either.
 */
export class ShardLookup {
  private readonly entries = new Map<string, Entry>();
  private readonly queue = new Set<string>();
  private looking = 0;

  constructor(private readonly deps: ShardLookupDeps) {}

  /** Updates whose shard is not known yet. */
  get waiting(): number {
    return this.entries.size;
  }

  /** When the oldest of them was heard, monotonic ms. */
  oldest(): number | null {
    let oldest: number | null = null;
    for (const { heard } of this.entries.values()) oldest = Math.min(oldest ?? heard.at, heard.at);
    return oldest;
  }

  /** Takes an update; `found` follows, perhaps much later, once for each state of the resource seen. */
  look(heard: Heard): void {
    const { metrics, log } = this.deps;
    const { server, uri } = heard;
    const key = deliveryKey(server, uri);
    const known = this.entries.get(key);
    if (known !== undefined) {
      known.again = known.phase === 'looking';
      metrics.add('agent_coalesced_events_total');
      return;
    }
    if (this.entries.size >= MOST_WAITING) {
      metrics.add('agent_dropped_events_total');
      const msg = `more than ${MOST_WAITING} resources wait to be looked at for their shard: an event was dropped`;
      log.warn('limit.exceeded', { limit: 'shard_lookup', server, uri, msg });
      return;
    }
    this.entries.set(key, { heard, failures: 0, phase: 'waiting', again: false });
    this.enqueue(key);
  }

  private enqueue(key: string): void {
    const entry = this.entries.get(key);
    if (entry === undefined) return;
    entry.phase = 'waiting';
    this.queue.add(key);
    this.pump();
  }

  private pump(): void {
    for (const key of this.queue) {
      if (this.looking >= AT_ONCE) return;
      this.queue.delete(key);
      const entry = this.entries.get(key);
      if (entry === undefined) continue;
      entry.phase = 'looking';
      entry.again = false;
      this.looking++;
      void this.deps
        .describe(entry.heard.server, entry.heard.uri)
        .then(
          (info) => this.succeeded(key, entry, info),
          (error: unknown) => this.failed(key, entry, error),
        )
        .finally(() => {
          this.looking--;
          this.pump();
        });
    }
  }

  private succeeded(key: string, entry: Entry, info: ResourceInfo | null): void {
    this.entries.delete(key);
    this.deps.found({ ...entry.heard, info });
    if (entry.again) this.look({ ...entry.heard, at: this.deps.clock.now() });
  }

  private failed(key: string, entry: Entry, error: unknown): void {
    const { clock, timers, random, log, metrics } = this.deps;
    const { server, uri } = entry.heard;
    entry.failures++;
    const reason = errorMessage(error);
    const answered = error instanceof AgentdError && error.code === 'MCP_PROTOCOL';
    if (answered && entry.failures >= BELIEVED_AFTER) {
      this.entries.delete(key);
      metrics.add('agent_dropped_events_total');
      const msg = `its shard is in its metadata, which cannot be read: ${reason}`;
      log.warn('shard.skipped', { server, uri, msg });
      return;
    }
    entry.phase = 'pausing';
    const pause = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(entry.failures - 1, 10));
    timers.set(`shard-lookup:${key}`, clock.now() + pause * (0.5 + random()), () => this.enqueue(key));
  }
}
