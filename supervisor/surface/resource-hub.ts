/** One thing a session has yet to be told. `sequence` orders what it has been told. */
export type ResourceNotice =
  | { readonly kind: 'updated'; readonly uri: string; readonly sequence: number }
  | { readonly kind: 'list_changed'; readonly sequence: number };

/** A session asked for more subscriptions than the hub allows. */
export class SubscriptionLimit extends Error {
  constructor(readonly limit: number) {
    super(`this session already subscribes to ${limit} resources, the most allowed; unsubscribe some first`);
    this.name = 'SubscriptionLimit';
  }
}

const MAX_SUBSCRIPTIONS = 20_000;

/**
 * Who subscribes to which resource, and what each session still has to be told.
 *
 * A notification carries no body, so a second one for a URI that is still waiting says nothing
 * new: each session keeps a set, not a queue. Memory is bounded by its subscriptions however slow
 * it reads, and nothing is lost (invariant 8).
 */
export class ResourceHub {
  private readonly sessions = new Set<HubSession>();
  private readonly subscribers = new Map<string, Set<HubSession>>();

  constructor(private readonly maxSubscriptions: number = MAX_SUBSCRIPTIONS) {}

  /** Adds a session; `wake` is called when the first notice is waiting for it. */
  attach(wake: () => void): HubSession {
    const session = new HubSession(this.subscribers, this.sessions, this.maxSubscriptions, wake);
    this.sessions.add(session);
    return session;
  }

  /** Tells every subscriber of `uri` that it may have changed. */
  notifyUpdated(uri: string): void {
    for (const session of this.subscribers.get(uri) ?? []) session.addUpdated(uri);
  }

  /** Tells every session that the list of resources changed. */
  notifyListChanged(): void {
    for (const session of this.sessions) session.addListChanged();
  }

  subscriberCount(uri: string): number {
    return this.subscribers.get(uri)?.size ?? 0;
  }

  /** URIs at least one session subscribes to. */
  subscribedUris(): IterableIterator<string> {
    return this.subscribers.keys();
  }
}

/** One session's subscriptions and notices. Made by `ResourceHub.attach`. */
export class HubSession {
  private readonly uris = new Set<string>();
  private readonly waiting = new Set<string>();
  private listWaiting = false;
  private sequence = 0;
  /** The sequence under which a URI was last told; a resumed stream is told again what it missed. */
  private readonly told = new Map<string, number>();
  private listTold = 0;

  constructor(
    private readonly subscribers: Map<string, Set<HubSession>>,
    private readonly sessions: Set<HubSession>,
    private readonly limit: number,
    private readonly wake: () => void,
  ) {}

  /** @throws SubscriptionLimit */
  subscribe(uri: string): void {
    if (this.uris.has(uri) || !this.sessions.has(this)) return;
    if (this.uris.size >= this.limit) throw new SubscriptionLimit(this.limit);
    this.uris.add(uri);
    const sessions = this.subscribers.get(uri);
    if (sessions === undefined) this.subscribers.set(uri, new Set([this]));
    else sessions.add(this);
  }

  unsubscribe(uri: string): void {
    if (!this.uris.delete(uri)) return;
    this.waiting.delete(uri);
    this.told.delete(uri);
    const sessions = this.subscribers.get(uri);
    sessions?.delete(this);
    if (sessions?.size === 0) this.subscribers.delete(uri);
  }

  /** Forgets the session. Nothing is told to it afterwards. */
  detach(): void {
    this.sessions.delete(this);
    for (const uri of [...this.uris]) this.unsubscribe(uri);
    this.listWaiting = false;
  }

  /** Called by the hub. */
  addUpdated(uri: string): void {
    const idle = !this.hasNotices;
    this.waiting.add(uri);
    if (idle) this.wake();
  }

  /** Called by the hub. */
  addListChanged(): void {
    const idle = !this.hasNotices;
    this.listWaiting = true;
    if (idle) this.wake();
  }

  get hasNotices(): boolean {
    return this.listWaiting || this.waiting.size > 0;
  }

  /** Takes the next notice, in the order things changed; list changes first. */
  take(): ResourceNotice | null {
    if (this.listWaiting) {
      this.listWaiting = false;
      this.listTold = ++this.sequence;
      return { kind: 'list_changed', sequence: this.sequence };
    }
    const [uri] = this.waiting;
    if (uri === undefined) return null;
    this.waiting.delete(uri);
    this.told.set(uri, ++this.sequence);
    return { kind: 'updated', uri, sequence: this.sequence };
  }

  /** The sequence of the last notice taken; 0 before the first. */
  get lastSequence(): number {
    return this.sequence;
  }

  /** Queues again every notice taken after `sequence`: a stream broke before it arrived. */
  rewind(sequence: number): void {
    if (this.listTold > sequence) this.listWaiting = true;
    for (const [uri, at] of this.told) if (at > sequence) this.waiting.add(uri);
  }
}
