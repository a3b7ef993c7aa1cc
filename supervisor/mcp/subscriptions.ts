import { errorMessage } from '../../protocol/errors.ts';
import type { Clock } from '../reactor/clock.ts';
import { compileMatch, type UriMatch } from '../routing/match.ts';
import type { Log } from '../telemetry/log.ts';
import type { PeerMessage } from './peers.ts';

/** What subscriptions need of a live session. Every call is bounded by its own deadline. */
export interface SubscriptionSession {
  /** Why updates cannot be heard, or null. */
  readonly deaf: string | null;
  /** Whether the server announces new and removed resources. */
  readonly announcesLists: boolean;
  subscribe(uri: string): Promise<void>;
  unsubscribe(uri: string): Promise<void>;
  list(): Promise<readonly { readonly uri: string }[]>;
}

export interface SubscriptionsOptions {
  readonly server: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly emit: (message: PeerMessage) => void;
  /** In [0, 1). */
  readonly random: () => number;
  /** Subscribe requests in flight at once. */
  readonly concurrency?: number;
  /** How often a server that announces no list changes is listed, ms. */
  readonly relistMs?: number;
}

type Cause = 'reread' | 'listed';

/**
 * The subscriptions of one connection, re-established on every new session.
 *
 * Wanted (exact URIs, and what the globs matched in the last listing) and held (what the server
 * acknowledged in this session) are kept apart; the difference is worked off with a bounded number
 * of requests in flight. An URI is announced as possibly changed once, right after its
 * subscription is acknowledged: whatever happened before is covered by the reading that follows,
 * whatever happens later is notified. A notification heard before that is covered too.
 */
export class Subscriptions {
  private readonly exact = new Set<string>();
  private readonly globs = new Map<string, UriMatch>();
  private readonly listed = new Set<string>();
  private readonly held = new Set<string>();
  /** URIs whose wanted and held state may differ, in order of arrival. */
  private readonly pending = new Map<string, Cause>();
  private readonly busy = new Set<string>();
  private readonly failing = new Set<string>();
  private session: SubscriptionSession | null = null;
  private listing: 'idle' | 'running' | 'again' | 'failed' = 'idle';
  private listedOnce = false;
  private listCost = 0;
  private listedAt = Number.NEGATIVE_INFINITY;
  private failures = 0;
  private retryTimer: NodeJS.Timeout | undefined;
  private listTimer: NodeJS.Timeout | undefined;
  private reported = '';

  constructor(private readonly options: SubscriptionsOptions) {}

  get active(): number {
    return this.held.size;
  }

  /** Starts watching an exact URI or a glob. */
  watch(pattern: string): void {
    const match = compileMatch(pattern);
    if (match.exact) {
      if (this.exact.has(pattern)) return;
      this.exact.add(pattern);
      this.enqueue(pattern, 'reread');
    } else {
      if (this.globs.has(pattern)) return;
      this.globs.set(pattern, match);
      this.listedOnce = false;
      this.relist();
    }
    this.options.log.info('subscribe', { server: this.options.server, match: pattern });
    this.pump();
  }

  unwatch(pattern: string): void {
    if (!this.exact.delete(pattern) && !this.globs.delete(pattern)) return;
    for (const uri of [...this.listed]) if (!this.matchesGlob(uri)) this.listed.delete(uri);
    for (const uri of this.held) if (!this.wants(uri)) this.enqueue(uri, 'reread');
    for (const uri of [...this.failing]) if (!this.wants(uri)) this.failing.delete(uri);
    this.options.log.info('unsubscribe', { server: this.options.server, match: pattern });
    this.pump();
  }

  /** A new session is live: everything is subscribed again. */
  attach(session: SubscriptionSession): void {
    this.forget();
    this.session = session;
    if (this.exact.size + this.globs.size > 0 && session.deaf !== null) {
      this.options.log.error('subscribe', {
        server: this.options.server,
        err: { type: 'MCP_CANNOT_SUBSCRIBE', message: `agentd cannot hear updates: ${session.deaf}` },
      });
    }
    for (const uri of this.exact) this.enqueue(uri, 'reread');
    this.relist();
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
    const awaited = this.pending.has(uri) || this.busy.has(uri);
    if (awaited && this.wants(uri) && !this.held.has(uri) && !this.failing.has(uri)) return;
    this.announce(uri, 'notification');
  }

  /** `notifications/resources/list_changed`. */
  listChanged(): void {
    this.relist();
  }

  /** What was sent for a while is lost, on a session that goes on. */
  reread(): void {
    for (const uri of [...this.held]) this.announce(uri, 'reread');
    this.relist();
  }

  private forget(): void {
    clearTimeout(this.retryTimer);
    clearTimeout(this.listTimer);
    this.retryTimer = undefined;
    this.listTimer = undefined;
    for (const set of [this.listed, this.held, this.pending, this.busy, this.failing]) set.clear();
    this.listing = 'idle';
    this.listedOnce = false;
    this.listedAt = Number.NEGATIVE_INFINITY;
    this.listCost = 0;
    this.failures = 0;
  }

  private wants(uri: string): boolean {
    return this.exact.has(uri) || this.listed.has(uri);
  }

  private matchesGlob(uri: string): boolean {
    for (const match of this.globs.values()) if (match.test(uri)) return true;
    return false;
  }

  private enqueue(uri: string, cause: Cause): void {
    if (this.session !== null && this.session.deaf === null) this.pending.set(uri, cause);
  }

  private pump(): void {
    const { session } = this;
    if (session === null) return;
    const limit = this.options.concurrency ?? 16;
    for (const [uri, cause] of this.pending) {
      if (this.busy.size >= limit) return;
      this.pending.delete(uri);
      // Looked at again when the request for it ends.
      if (this.busy.has(uri) || this.wants(uri) === this.held.has(uri)) continue;
      this.busy.add(uri);
      void this.settle(session, uri, cause);
    }
    if (this.busy.size === 0) this.report();
  }

  /** Brings one URI from what is held to what is wanted. */
  private async settle(session: SubscriptionSession, uri: string, cause: Cause): Promise<void> {
    const subscribing = this.wants(uri);
    try {
      if (subscribing) await session.subscribe(uri);
      else await session.unsubscribe(uri);
      if (this.session !== session) return;
      this.failing.delete(uri);
      if (subscribing) {
        this.held.add(uri);
        this.options.log.debug('subscribe', { server: this.options.server, uri });
        if (this.wants(uri)) this.announce(uri, cause);
      } else {
        this.held.delete(uri);
      }
    } catch (error) {
      if (this.session !== session) return;
      this.failed(uri, subscribing, error);
    }
    this.busy.delete(uri);
    if (this.wants(uri) !== this.held.has(uri) && !this.failing.has(uri)) this.enqueue(uri, cause);
    this.pump();
  }

  private failed(uri: string, subscribing: boolean, error: unknown): void {
    const { log, server } = this.options;
    if (!subscribing) {
      // Not listening any more is what was wanted; the server may have forgotten the resource.
      this.held.delete(uri);
      log.debug('unsubscribe', { server, uri, msg: errorMessage(error) });
      return;
    }
    if (!this.wants(uri)) return;
    this.failing.add(uri);
    const level = this.failing.size === 1 ? 'warn' : 'debug';
    log.write(level, 'subscribe', { server, uri, msg: `not subscribed: ${errorMessage(error)}` });
    this.scheduleRetry();
  }

  private scheduleRetry(): void {
    if (this.retryTimer !== undefined) return;
    const delay = Math.min(30_000, 500 * 2 ** Math.min(this.failures, 10));
    this.failures += 1;
    this.retryTimer = setTimeout(
      () => {
        this.retryTimer = undefined;
        for (const uri of this.failing) this.enqueue(uri, 'reread');
        this.failing.clear();
        if (this.listing === 'failed') this.startListing();
        this.pump();
      },
      delay * (0.5 + 0.5 * this.options.random()),
    );
  }

  /** Lists soon: at once, or after twice the time the last listing took, so that a burst costs little. */
  private relist(): void {
    if (this.session === null || this.session.deaf !== null || this.globs.size === 0) return;
    if (this.listing === 'running') this.listing = 'again';
    if (this.listing === 'again' || this.listing === 'failed') return;
    clearTimeout(this.listTimer);
    const wait = this.listedAt + 2 * this.listCost - this.options.clock.now();
    if (wait <= 0) this.startListing();
    else this.listTimer = setTimeout(() => this.startListing(), wait);
  }

  private startListing(): void {
    const { session } = this;
    if (session === null) return;
    this.listing = 'running';
    void this.list(session);
  }

  private async list(session: SubscriptionSession): Promise<void> {
    const started = this.options.clock.now();
    try {
      const resources = await session.list();
      if (this.session !== session) return;
      this.takeListing(resources);
      const again = this.listing === 'again';
      this.listing = 'idle';
      this.listedAt = this.options.clock.now();
      this.listCost = this.listedAt - started;
      if (again) this.relist();
      else if (!session.announcesLists) {
        this.listTimer = setTimeout(() => this.startListing(), this.options.relistMs ?? 30_000);
      }
    } catch (error) {
      if (this.session !== session) return;
      this.listing = 'failed';
      const { log, server } = this.options;
      log.warn('subscribe', { server, msg: `resources could not be listed: ${errorMessage(error)}` });
      this.scheduleRetry();
    }
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
    if (now === this.reported) return;
    if (this.reported === '' && active === 0 && this.exact.size + this.globs.size === 0) return;
    this.reported = now;
    log.debug('subscribe', { server, active, complete });
    emit({ type: 'subscriptions', server, active, complete });
  }

  private isComplete(): boolean {
    if (this.exact.size + this.globs.size === 0) return true;
    if (this.session === null || this.session.deaf !== null) return false;
    if (this.globs.size > 0 && (!this.listedOnce || this.listing === 'failed')) return false;
    return this.failing.size === 0 && this.pending.size === 0 && this.busy.size === 0;
  }
}
