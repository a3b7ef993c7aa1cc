import type { Tool } from '@modelcontextprotocol/sdk/types.js';
import { AgentdError, errorMessage } from '../../protocol/errors.ts';
import { serverAddress } from './address.ts';
import {
  type ConnectionEffect,
  type ConnectionEvent,
  type ConnectionState,
  INITIAL_STEP,
  stepConnection,
} from './connection-machine.ts';
import type { ConnectionOptions } from './connection-options.ts';
import { Heartbeat } from './heartbeat.ts';
import type { LinkEvents } from './link.ts';
import type { CallOptions, CallResult, Peer, ResourceInfo } from './peers.ts';
import type { Session, SessionEvents } from './session.ts';
import { type SubscriptionSession, Subscriptions } from './subscriptions.ts';
import { ToolList } from './tool-list.ts';

/** One server: keeps a session to it alive, applies what the connection machine decides. */
export class Connection implements Peer {
  readonly name: string;
  readonly tags: readonly string[];
  readonly subscriptions: Subscriptions;
  private readonly heartbeat: Heartbeat;
  private readonly toolList: ToolList;
  private current: ConnectionState = { state: 'closed' };
  private session: Session | null = null;
  private retired: Promise<void> = Promise.resolve();
  private timer: NodeJS.Timeout | undefined;
  private liveSince = 0;
  /** Grows when a transport is retired: what it still reports is then ignored. */
  private generation = 0;
  private abandon: () => void = () => undefined;
  private lastFailure: AgentdError | null = null;
  private readonly waiters = new Set<() => void>();

  constructor(private readonly options: ConnectionOptions) {
    const { config, clock, log, random, emit, timings } = options;
    this.name = config.name;
    this.tags = config.tags;
    const { relistMs } = timings;
    this.subscriptions = new Subscriptions({ server: config.name, clock, log, random, emit, relistMs });
    this.toolList = new ToolList(config.name, log, timings.connectMs);
    this.heartbeat = new Heartbeat(timings.pingMs, clock, (event) => this.dispatch(event));
  }

  get state(): Peer['state'] {
    const { state } = this.current;
    return state === 'failed' || state === 'closed' ? 'lost' : state;
  }

  /** It will not come back by itself. */
  get ended(): boolean {
    return this.current.state === 'failed' || this.current.state === 'closed';
  }

  /** Why the last attempt failed; null when none did. */
  get failure(): AgentdError | null {
    return this.lastFailure;
  }

  /** What the server lists; kept while it is away. */
  get tools(): readonly Tool[] {
    return this.toolList.tools;
  }

  get toolNames(): readonly string[] {
    return this.tools.map((tool) => tool.name);
  }

  start(): void {
    this.current = INITIAL_STEP.state;
    this.apply(INITIAL_STEP.effects);
  }

  callTool(tool: string, args: Record<string, unknown>, options: CallOptions): Promise<CallResult> {
    return this.live((session) => session.callTool(tool, args, options));
  }

  readResource(uri: string, options: CallOptions): ReturnType<Peer['readResource']> {
    return this.live((session) => session.readResource(uri, options));
  }

  listResources(options: CallOptions): Promise<readonly ResourceInfo[]> {
    return this.live((session) => session.listResources(options));
  }

  async whenLive(timeoutMs: number, signal?: AbortSignal): Promise<boolean> {
    const end = this.options.clock.now() + timeoutMs;
    while (this.current.state !== 'live' && !this.ended && signal?.aborted !== true) {
      const left = end - this.options.clock.now();
      if (left <= 0) return false;
      await this.changed(left, signal);
    }
    return this.current.state === 'live';
  }

  /** Resolves at the next change of state, after `timeoutMs`, or when `signal` fires. */
  changed(timeoutMs: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        this.waiters.delete(done);
        signal?.removeEventListener('abort', done);
        resolve();
      };
      const timer = setTimeout(done, timeoutMs);
      this.waiters.add(done);
      signal?.addEventListener('abort', done);
    });
  }

  /** Ends the connection and waits, at most `budgetMs`, until its sockets or process are gone. */
  async close(budgetMs: number): Promise<void> {
    const { session } = this;
    const graceful = this.current.state === 'live';
    this.generation += 1;
    this.session = null;
    this.heartbeat.stop();
    this.dispatch({ type: 'close' });
    this.subscriptions.detach();
    this.abandon();
    if (session !== null) this.retire(session.link.close(budgetMs, graceful));
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, budgetMs);
    });
    await Promise.race([this.retired, late]);
    clearTimeout(timer);
  }

  private live<T>(call: (session: Session) => Promise<T>): Promise<T> {
    const { session } = this;
    if (session !== null && this.current.state === 'live') return call(session);
    const why = this.lastFailure === null ? '' : `: ${this.lastFailure.message}`;
    return Promise.reject(
      new AgentdError('MCP_UNAVAILABLE', `MCP server ${this.name} is not connected${why}`, { exitCode: 6 }),
    );
  }

  private dispatch(event: ConnectionEvent): void {
    const before = this.current.state;
    const { state, effects } = stepConnection(this.current, event);
    this.current = state;
    this.apply(effects);
    if (this.current.state !== before) for (const wake of [...this.waiters]) wake();
  }

  private apply(effects: readonly ConnectionEffect[]): void {
    for (const effect of effects) this.applyOne(effect);
  }

  private applyOne(effect: ConnectionEffect): void {
    const { log, metrics, emit } = this.options;
    const [server, remedy] = [this.name, this.lastFailure?.remedy];
    switch (effect.type) {
      case 'open':
        void this.open();
        return;
      case 'announce_up':
        metrics.set('agent_mcp_up', 1, { server });
        log.info('mcp.connect', { server, address: serverAddress(this.options.config.transport) });
        emit({ type: 'peer.up', server, first: effect.first });
        return;
      case 'announce_down':
        metrics.set('agent_mcp_up', 0, { server });
        log.warn('mcp.disconnect', { server, msg: effect.reason });
        emit({ type: 'peer.down', server, reason: effect.reason });
        return;
      case 'count_failure':
        metrics.set('agent_mcp_up', 0, { server });
        metrics.add('agent_mcp_connect_failures_total', { server });
        log.warn('mcp.connect.fail', { server, msg: effect.reason, remedy });
        return;
      case 'tear_down':
        clearTimeout(this.timer);
        if (this.current.state === 'lost') void this.tearDown(this.current);
        return;
      case 'wait':
        this.timer = setTimeout(() => this.dispatch({ type: 'retry_due' }), effect.delayMs);
        return;
      case 'announce_failed':
        log.error('mcp.connect.fail', { server, msg: `given up: ${effect.reason}`, remedy });
        emit({ type: 'peer.failed', server, reason: effect.reason });
        return;
    }
  }

  /** One attempt: transport, handshake, tools. The SDK is loaded only when there is a server to talk to. */
  private async open(): Promise<void> {
    const { timings, clock } = this.options;
    const own = this.generation;
    let session: Session | null = null;
    try {
      session = await this.handshake();
      await this.toolList.load(session);
    } catch (error) {
      if (session !== null) this.retire(session.link.close(timings.teardownMs, false));
      if (own !== this.generation) return;
      this.lastFailure =
        error instanceof AgentdError ? error : new AgentdError('MCP_UNAVAILABLE', errorMessage(error));
      this.dispatch({ type: 'open_failed', reason: this.lastFailure.message });
      return;
    }
    if (own !== this.generation) {
      this.retire(session.link.close(timings.teardownMs, false));
      return;
    }
    this.session = session;
    this.lastFailure = null;
    this.liveSince = clock.now();
    this.dispatch({ type: 'opened', at: this.liveSince });
    this.heartbeat.start(session);
    const attach = (): void => this.subscriptions.attach(subscriptionSession(session, timings.subscribeMs));
    attach();
    // What was subscribed before the stream was open may have changed unheard.
    if (session.undecided) void session.link.ready.then(() => own === this.generation && attach());
  }

  private async handshake(): Promise<Session> {
    const [{ openLink }, { Session }] = await Promise.all([import('./open-link.ts'), import('./session.ts')]);
    const { options } = this;
    const { timings } = options;
    const events = this.events();
    const link = openLink(
      {
        config: options.config,
        instance: options.instance,
        tlsCa: options.tlsCa,
        maxMessageBytes: timings.maxMessageBytes,
        connectTimeoutMs: timings.connectMs,
        clock: options.clock,
        log: options.log,
      },
      events,
    );
    this.abandon = () => this.retire(link.close(timings.teardownMs, false));
    try {
      return await Session.open(this.name, options.client, link, events, timings.connectMs);
    } catch (error) {
      this.abandon();
      throw error;
    } finally {
      this.abandon = () => undefined;
    }
  }

  /** What a transport and its session report, as long as they are the ones in use. */
  private events(): LinkEvents & SessionEvents {
    const own = this.generation;
    const current = (): boolean => own === this.generation;
    return {
      heard: () => this.heartbeat.heard(),
      suspect: () => current() && this.heartbeat.askNow(),
      broken: (reason) => current() && this.broken(reason),
      gap: () => current() && this.subscriptions.reread(),
      updated: (uri) => current() && this.subscriptions.notified(uri),
      resourcesChanged: () => current() && this.subscriptions.listChanged(),
      toolsChanged: () => current() && this.session !== null && void this.toolList.refresh(this.session),
    };
  }

  private broken(reason: string): void {
    if (this.current.state === 'connecting') this.lastFailure = new AgentdError('MCP_UNAVAILABLE', reason);
    this.dispatch({ type: 'broken', reason, at: this.options.clock.now() });
  }

  /** What is left of a lost connection goes before a new one is tried. */
  private async tearDown(lost: Extract<ConnectionState, { state: 'lost' }>): Promise<void> {
    const { options, session } = this;
    const livedMs = session === null ? null : options.clock.now() - this.liveSince;
    this.generation += 1;
    this.session = null;
    this.heartbeat.stop();
    this.subscriptions.detach();
    this.abandon();
    if (session !== null) this.retire(session.link.close(options.timings.teardownMs, false));
    await this.retired;
    const { failures, reason } = lost;
    this.dispatch({ type: 'torn_down', decision: options.retry.decide({ failures, livedMs, reason }) });
  }

  /** Remembers an ending transport, so that closing can wait for it. */
  private retire(ending: Promise<void>): void {
    const before = this.retired;
    this.retired = Promise.allSettled([before, ending]).then(() => undefined);
  }
}

function subscriptionSession(session: Session, timeoutMs: number): SubscriptionSession {
  return {
    deaf: session.deaf,
    announcesLists: session.announcesLists,
    subscribe: (uri) => session.subscribe(uri, { timeoutMs }),
    unsubscribe: (uri) => session.unsubscribe(uri, { timeoutMs }),
    list: () => session.listResources({ timeoutMs }),
  };
}
