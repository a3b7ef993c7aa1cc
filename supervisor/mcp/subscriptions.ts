import { errorMessage } from '../../protocol/errors.ts';
import type { Clock } from '../reactor/clock.ts';
import { compileMatch, type UriMatch } from '../routing/match.ts';
import type { Log } from '../telemetry/log.ts';
import type { PeerMessage } from './peers.ts';
import { type ListingSession, ResourceListing } from './resource-listing.ts';
import { Settling } from './settling.ts';

/** What subscriptions need of a live session. Every call is bounded by its own deadline. */
export interface SubscriptionSession extends ListingSession {
  /** Why updates cannot be heard, or null. */
  readonly deaf: string | null;
  subscribe(uri: string): Promise<void>;
  unsubscribe(uri: string): Promise<void>;
}

export interface SubscriptionsOptions {
  readonly server: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly emit: (message: PeerMessage) => void;
  /** In [0, 1): spreads retries. */
  readonly random: () => number;
  /** Subscribe requests in flight at once. Default 16. */
  readonly concurrency?: number;
  /** How often a server that announces no list changes is listed, ms. Default 30 s. */
  readonly relistMs?: number;
}

type Cause = 'reread' | 'listed';

const CONCURRENCY = 16;
const RELIST_MS = 30_000;
/**
 * How long after its subscription was acknowledged an URI is announced, ms. Over HTTP a notification
 * may be overtaken by the acknowledgement it was sent before; the announcement covers it.
 */
const SETTLE_MS = 10;

/**
 * The subscriptions of one connection, re-established on every new session.
 *
 * Wanted (exact URIs, and what the globs matched in the last listing) and held (what the server
 * acknowledged in this session) are kept apart; the difference is worked off with a bounded number
 * of requests in flight. An URI is announced as possibly changed once, after its subscription is
 * acknowledged: whatever happened before is covered by the reading that follows, whatever happens
 * later is notified.
 */
export class Subscriptions {
  private readonly exact = new Set<string>();
  private readonly globs = new Map<string, UriMatch>();
  private readonly listed = new Set<string>();
  private readonly held = new Set<string>();
  /** URIs whose wanted and held state may differ, in order of arrival. */
  private readonly pending = new Map<string, Cause>();
  private readonly busy = new Set<string>();
  /** Held, not yet announced. */
  private readonly settling: Settling<Cause>;
  private readonly failing = new Set<string>();
  private readonly listing: ResourceListing;
  private session: SubscriptionSession | null = null;
  private listedOnce = false;
  private failures = 0;
  private retryTimer: NodeJS.Timeout | undefined;
  private reported = '';

  constructor(private readonly options: SubscriptionsOptions) {
    const { server, clock, log, relistMs = RELIST_MS } = options;
    this.settling = new Settling(SETTLE_MS, (due) => {
      for (const [uri, cause] of due) if (this.wants(uri)) this.announce(uri, cause);
      this.pump();
    });
    const named = { server, clock, log, relistMs };
    this.listing = new ResourceListing({
      ...named,
      onListed: (resources) => this.takeListing(resources),
      onFailed: () => {
        this.scheduleRetry();
        this.pump();
      },
    });
  }

  get active(): number {
    return this.held.size;
  }

  /** Starts watching an exact URI or a glob. */
  watch(pattern: string): void {
    if (this.exact.has(pattern) || this.globs.has(pattern)) return;
    const match = compileMatch(pattern);
    this.options.log.info('subscribe', { server: this.options.server, match: pattern });
    if (match.exact) {
      this.exact.add(pattern);
      this.enqueue(pattern, 'reread');
    } else {
      this.globs.set(pattern, match);
      this.listedOnce = false;
      this.list();
    }
    if (this.session !== null && this.session.deaf !== null) this.complain(this.session.deaf);
    this.pump();
  }

  unwatch(pattern: string): void {
    if (!this.exact.delete(pattern) && !this.globs.delete(pattern)) return;
    this.options.log.info('unsubscribe', { server: this.options.server, match: pattern });
    for (const uri of [...this.listed]) if (!this.matchesGlob(uri)) this.listed.delete(uri);
    for (const uri of this.held) if (!this.wants(uri)) this.enqueue(uri, 'reread');
    for (const uri of [...this.failing]) if (!this.wants(uri)) this.failing.delete(uri);
    this.pump();
  }

  /** A new session is live: everything is subscribed again. */
  attach(session: SubscriptionSession): void {
    this.forget();
    this.session = session;
    if (this.watching && session.deaf !== null) this.complain(session.deaf);
    if (session.deaf === null) this.listing.attach(session);
    for (const uri of this.exact) this.enqueue(uri, 'reread');
    this.list();
    this.pump();
  }

  /** The session is gone. */
  detach(): void {
    this.forget();
    this.session = null;
    this.report();
  }

  /** `notifications/resources/updated`. */
  notified(uri: string): void {
    const announced = this.held.has(uri) && !this.settling.has(uri);
    if (this.wants(uri) && !announced && !this.failing.has(uri) && this.session !== null) return;
    this.announce(uri, 'notification');
  }

  /** `notifications/resources/list_changed`. */
  listChanged(): void {
    this.list();
  }

  /** What was sent for a while is lost, on a session that goes on; or others care for some of it now. */
  reread(which: (uri: string) => boolean = () => true): void {
    for (const uri of [...this.held]) if (which(uri)) this.announce(uri, 'reread');
    this.list();
  }

  private get watching(): boolean {
    return this.exact.size + this.globs.size > 0;
  }

  private complain(why: string): void {
    const err = { type: 'MCP_CANNOT_SUBSCRIBE', message: `agentd cannot hear updates: ${why}` };
    this.options.log.error('subscribe', { server: this.options.server, err });
  }

  private forget(): void {
    clearTimeout(this.retryTimer);
    this.retryTimer = undefined;
    this.listing.detach();
    this.settling.clear();
    for (const set of [this.listed, this.held, this.pending, this.busy, this.failing]) set.clear();
    this.listedOnce = false;
    this.failures = 0;
  }

  private wants(uri: string): boolean {
    return this.exact.has(uri) || this.listed.has(uri);
  }

  private matchesGlob(uri: string): boolean {
    for (const match of this.globs.values()) if (match.test(uri)) return true;
    return false;
  }

  private list(): void {
    if (this.globs.size > 0) this.listing.request();
  }

  private enqueue(uri: string, cause: Cause): void {
    if (this.session !== null && this.session.deaf === null) this.pending.set(uri, cause);
  }

  private pump(): void {
    const { session } = this;
    if (session === null) return;
    const limit = this.options.concurrency ?? CONCURRENCY;
    for (const [uri, cause] of this.pending) {
      if (this.busy.size >= limit) return;
      this.pending.delete(uri);
      // Looked at again when the request for it ends.
      if (this.busy.has(uri) || this.wants(uri) === this.held.has(uri)) continue;
      this.busy.add(uri);
      void this.reconcile(session, uri, cause);
    }
    if (this.busy.size === 0 && this.settling.empty && !this.listing.running) this.report();
  }

  /** Brings one URI from what is held to what is wanted. */
  private async reconcile(session: SubscriptionSession, uri: string, cause: Cause): Promise<void> {
    const subscribing = this.wants(uri);
    try {
      if (subscribing) await session.subscribe(uri);
      else await session.unsubscribe(uri);
      if (this.session !== session) return;
      if (subscribing) this.acknowledged(uri, cause);
      else this.held.delete(uri);
    } catch (error) {
      if (this.session !== session) return;
      this.refused(uri, subscribing, error);
    }
    this.busy.delete(uri);
    if (this.wants(uri) !== this.held.has(uri) && !this.failing.has(uri)) this.enqueue(uri, cause);
    this.pump();
  }

  private acknowledged(uri: string, cause: Cause): void {
    this.options.log.debug('subscribe', { server: this.options.server, uri });
    this.held.add(uri);
    this.settling.add(uri, cause);
  }

  private refused(uri: string, subscribing: boolean, error: unknown): void {
    const { log, server } = this.options;
    if (!subscribing) {
      // Not listening any more is what was wanted; the server may have forgotten the resource.
      this.held.delete(uri);
      log.debug('unsubscribe', { server, uri, msg: errorMessage(error) });
      return;
    }
    if (!this.wants(uri)) return;
    this.failing.add(uri);
    // One line tells of many: the rest is counted by `complete: false`.
    const level = this.failing.size === 1 ? 'warn' : 'debug';
    log.write(level, 'subscribe', { server, uri, msg: `not subscribed: ${errorMessage(error)}` });
    this.scheduleRetry();
  }

  private scheduleRetry(): void {
    if (this.retryTimer !== undefined) return;
    const delay = Math.min(30_000, 500 * 2 ** Math.min(this.failures, 10));
    this.failures += 1;
    const spread = delay * (0.5 + 0.5 * this.options.random());
    this.retryTimer = setTimeout(() => this.retry(), spread);
  }

  private retry(): void {
    this.retryTimer = undefined;
    for (const uri of this.failing) this.enqueue(uri, 'reread');
    this.failing.clear();
    this.listing.retry();
    this.pump();
  }

  private takeListing(resources: readonly { readonly uri: string }[]): void {
    const cause: Cause = this.listedOnce ? 'listed' : 'reread';
    this.listedOnce = true;
    const seen = new Set<string>();
    for (const { uri } of resources) if (this.matchesGlob(uri)) seen.add(uri);
    for (const uri of [...this.listed]) {
      if (seen.has(uri)) continue;
      this.listed.delete(uri);
      this.failing.delete(uri);
      this.enqueue(uri, cause);
    }
    for (const uri of seen) {
      if (this.listed.has(uri)) continue;
      this.listed.add(uri);
      this.enqueue(uri, cause);
    }
    this.pump();
  }

  private announce(uri: string, cause: 'notification' | Cause): void {
    const { emit, server, clock } = this.options;
    emit({ type: 'resource.updated', server, uri, cause, at: clock.now() });
  }

  /** Says how things stand when nothing is in flight: a resource that is just being added is no gap. */
  private report(): void {
    const { server, emit, log } = this.options;
    const active = this.held.size;
    const complete = this.isComplete();
    const now = `${active} ${complete}`;
    if (now === this.reported || (this.reported === '' && !this.watching)) return;
    this.reported = now;
    log.debug('subscribe', { server, active, complete });
    emit({ type: 'subscriptions', server, active, complete });
  }

  private isComplete(): boolean {
    if (!this.watching) return true;
    if (this.session === null || this.session.deaf !== null) return false;
    if (this.globs.size > 0 && (!this.listedOnce || this.listing.failed)) return false;
    return this.failing.size === 0;
  }
}
