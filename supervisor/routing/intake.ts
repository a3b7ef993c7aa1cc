import { isDeepStrictEqual } from 'node:util';
import type { Config, RouteConfig } from '../config/config.ts';
import { compileShardKey, inShard, type ShardKey } from '../gates/shard-gate.ts';
import type { ResourceInfo } from '../mcp/peers.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { RouteQueue } from './route-queue.ts';
import { type Route, Router } from './router.ts';

/** A route with the queue of what waits on it. */
export interface Lane {
  readonly route: Route;
  readonly queue: RouteQueue;
  readonly shardKey: ShardKey;
}

/** One update, as heard. */
export interface Heard {
  readonly server: string;
  readonly uri: string;
  readonly cause: string;
  /** Monotonic ms. */
  readonly at: number;
}

/** Finds out what a shard key needs to know of a resource; the answer comes back to `placed`. */
export interface ShardLooks {
  look(heard: Heard): void;
  readonly waiting: number;
  /** When the oldest waiting update was heard, monotonic ms. */
  oldest(): number | null;
}

/** Smallest default queue cap, whatever is watched. */
const SMALLEST_CAP = 16;

/**
 * From a notification to a queue: routed here? in our shard? then queued. Nothing else has been
 * paid for when either answer is no.
 */
export class Intake {
  private current: readonly Lane[] = [];
  private router = new Router([]);
  private byRoute = new Map<Route, Lane>();
  /** In delivery on a route that does not take them any more, with the queue that delivers them. */
  private readonly displaced = new Map<string, RouteQueue>();

  /** @param watched how many distinct URIs are watched now: the default queue cap */
  constructor(
    private readonly config: Pick<Config, 'routes' | 'shard'>,
    private readonly log: Log,
    private readonly metrics: Metrics,
    private readonly watched: () => number,
    private readonly looks: ShardLooks | null = null,
  ) {
    this.reroute(config.routes, 0);
  }

  get lanes(): readonly Lane[] {
    return this.current;
  }

  /**
   * Puts other routes in force. A route that keeps its name keeps its queue, and one that is the same
   * in all keeps its configuration object. What waits moves to the
   * route that takes it now, and is dropped and counted where none does. What is in delivery ends on
   * the route it began on; until then no other route starts on the same resource.
   *
   * @param now monotonic ms
   * @returns whether a resource has an owner, and another one than before
   */
  reroute(routes: readonly RouteConfig[], now: number): (server: string, uri: string) => boolean {
    const { router: before, current: old } = this;
    const known = new Map(old.map((lane) => [lane.route.config.name, lane]));
    const kept = routes.map((config) => {
      const same = known.get(config.name)?.route.config;
      return isDeepStrictEqual(same, config) ? (same ?? config) : config;
    });
    this.router = new Router(kept);
    this.byRoute = new Map(
      this.router.routes.map((route) => [route, this.lane(route, known.get(route.config.name)?.queue)]),
    );
    this.current = [...this.byRoute.values()];
    for (const { queue } of old) {
      for (const key of queue.uris()) {
        const { server, uri } = splitDeliveryKey(key);
        if (this.laneOf(server, uri)?.queue !== queue) this.displaced.set(key, queue);
      }
    }
    this.rehome(now);
    return (server, uri) => {
      const owner = this.router.find(server, uri);
      return owner !== null && owner.config.name !== before.find(server, uri)?.config.name;
    };
  }

  /** Moves what a route no longer takes as soon as it is not in delivery there. Before each start. */
  rehome(now: number): void {
    for (const [key, queue] of this.displaced) {
      if (queue.stateOf(key) === 'delivering') continue;
      this.displaced.delete(key);
      const since = queue.withdraw(key);
      if (since === null) continue;
      const { server, uri } = splitDeliveryKey(key);
      const lane = this.laneOf(server, uri);
      if (lane === null) {
        this.metrics.add('agent_dropped_events_total');
        this.log.info('event.unrouted', { server, uri, msg: 'it waited, and no route takes it any more' });
      } else this.locate(lane, { server, uri, cause: 'reroute', at: since }, now);
    }
  }

  private lane(route: Route, queue: RouteQueue | undefined): Lane {
    const { debounceMs, queueCap, overflow, shardKey } = route.config;
    const options = { debounceMs, cap: () => queueCap ?? Math.max(SMALLEST_CAP, this.watched()), overflow };
    queue?.configure(options);
    return { route, queue: queue ?? new RouteQueue(options), shardKey: compileShardKey(shardKey) };
  }

  /** Takes one update as far as its queue; the lane it waits on, or null when it is not ours. */
  hear(heard: Heard, now: number): Lane | null {
    const { log, metrics } = this;
    const { server, uri } = heard;
    log.debug('resource.updated', { server, uri, cause: heard.cause });
    const lane = this.laneOf(server, uri);
    if (lane === null) {
      metrics.add('agent_unrouted_events_total');
      log.debug('event.unrouted', { server, uri });
      return null;
    }
    return this.locate(lane, heard, now);
  }

  /** Queues it, at once or when it is known which shard it is in. */
  private locate(lane: Lane, heard: Heard, now: number): Lane | null {
    const { shardKey } = lane.route.config;
    if (this.looks !== null && this.config.shard.count > 1 && shardKey.kind === 'metadata') {
      this.looks.look(heard);
      return null;
    }
    return this.place(lane, heard, null, now);
  }

  /** The resource of an update whose shard depends on it has been looked at. */
  placed(looked: Heard & { readonly info: ResourceInfo | null }, now: number): Lane | null {
    const lane = this.laneOf(looked.server, looked.uri);
    return lane === null ? null : this.place(lane, looked, looked.info, now);
  }

  private place(lane: Lane, heard: Heard, info: ResourceInfo | null, now: number): Lane | null {
    const { log, metrics } = this;
    const { server, uri } = heard;
    const { index, count } = this.config.shard;
    if (!inShard(lane.shardKey(uri, info), index, count)) {
      metrics.add('agent_shard_skipped_total');
      log.debug('shard.skipped', { server, uri, route: lane.route.config.name });
      return null;
    }
    const key = deliveryKey(server, uri);
    // One delivery of a resource at a time: another route's is waited for.
    const elsewhere = this.displaced.get(key);
    const queue = elsewhere?.stateOf(key) === 'delivering' ? elsewhere : lane.queue;
    const offered = queue.offer(key, now, heard.at);
    if (offered.kind === 'coalesced') metrics.add('agent_coalesced_events_total');
    if (offered.kind === 'dropped') {
      metrics.add('agent_dropped_events_total');
      log.warn('limit.exceeded', {
        limit: 'queue',
        route: lane.route.config.name,
        uri: splitDeliveryKey(offered.uri).uri,
        msg: `the queue of route ${lane.route.config.name} is full: an event was dropped (overflow: ${lane.route.config.overflow})`,
      });
    }
    return lane;
  }

  /** The lane of an item, whatever its shard; null when no route matches. */
  laneOf(server: string, uri: string): Lane | null {
    const route = this.router.find(server, uri);
    return (route === null ? undefined : this.byRoute.get(route)) ?? null;
  }

  /** Events that wait on any lane, or for their shard to be known. */
  get waiting(): number {
    return this.lanes.reduce((sum, lane) => sum + lane.queue.waiting, this.looks?.waiting ?? 0);
  }

  /** Reactions being claimed, running or settling on any lane. */
  get inflight(): number {
    const retired = new Set(this.displaced.values());
    let sum = 0;
    for (const { queue } of this.current) {
      sum += queue.inflight;
      retired.delete(queue);
    }
    for (const queue of retired) sum += queue.inflight;
    return sum;
  }

  /** Age of the oldest waiting event, ms. */
  lag(now: number): number {
    let lag = Math.max(0, now - (this.looks?.oldest() ?? now));
    for (const lane of this.lanes) lag = Math.max(lag, now - (lane.queue.oldest() ?? now));
    return lag;
  }

  /** When the next debouncing event becomes ready, monotonic ms. */
  nextDue(): number | null {
    let next: number | null = null;
    for (const lane of this.lanes) {
      const due = lane.queue.nextDue();
      if (due !== null && (next === null || due < next)) next = due;
    }
    return next;
  }
}

/** Queues are keyed by server and URI: two servers may use the same URI for different things. */
export function deliveryKey(server: string, uri: string): string {
  return `${server}\u0000${uri}`;
}

export function splitDeliveryKey(key: string): { readonly server: string; readonly uri: string } {
  const at = key.indexOf('\u0000');
  return { server: key.slice(0, at), uri: key.slice(at + 1) };
}
