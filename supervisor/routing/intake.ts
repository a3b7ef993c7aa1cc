import type { Config } from '../config/config.ts';
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
  readonly lanes: readonly Lane[];
  private readonly router: Router;
  private readonly byRoute = new Map<Route, Lane>();

  /** @param watched how many distinct URIs are watched now: the default queue cap */
  constructor(
    private readonly config: Pick<Config, 'routes' | 'shard'>,
    private readonly log: Log,
    private readonly metrics: Metrics,
    watched: () => number,
    private readonly looks: ShardLooks | null = null,
  ) {
    this.router = new Router(config.routes);
    this.lanes = this.router.routes.map((route) => {
      const { debounceMs, queueCap, overflow, shardKey } = route.config;
      const lane: Lane = {
        route,
        queue: new RouteQueue({
          debounceMs,
          cap: () => queueCap ?? Math.max(SMALLEST_CAP, watched()),
          overflow,
        }),
        shardKey: compileShardKey(shardKey),
      };
      this.byRoute.set(route, lane);
      return lane;
    });
  }

  /** Takes one update as far as its queue; the lane it waits on, or null when it is not ours. */
  hear(heard: Heard, now: number): Lane | null {
    const { log, metrics } = this;
    const { server, uri } = heard;
    log.debug('resource.updated', { server, uri, cause: heard.cause });
    const route = this.router.find(server, uri);
    const lane = route === null ? undefined : this.byRoute.get(route);
    if (lane === undefined) {
      metrics.add('agent_unrouted_events_total');
      log.debug('event.unrouted', { server, uri });
      return null;
    }
    if (
      this.looks !== null &&
      this.config.shard.count > 1 &&
      lane.route.config.shardKey.kind === 'metadata'
    ) {
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
    const offered = lane.queue.offer(deliveryKey(server, uri), now, heard.at);
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
    return this.lanes.reduce((sum, lane) => sum + lane.queue.inflight, 0);
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
