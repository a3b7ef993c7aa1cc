import type { ServerResponse } from 'node:http';
import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { type JSONRPCMessage, LATEST_PROTOCOL_VERSION } from '@modelcontextprotocol/sdk/types.js';
import { RPC } from './http-reply.ts';
import type { HttpRequest } from './http-server.ts';
import type { HubSession, ResourceHub } from './resource-hub.ts';
import { SessionTransport } from './session-transport.ts';
import { SseStream } from './sse-stream.ts';

/** What a session's server may know and do. */
export interface SessionContext {
  readonly sessionId: string;
  /** Whether the caller may manage this process; fixed for the life of the session. */
  readonly management: boolean;
  /** Begun at another server behind the same address: what it subscribed to there is not known here. */
  readonly adopted: boolean;
  /**
   * Subscribes the session to a resource of the endpoint's hub.
   *
   * @throws SubscriptionLimit
   */
  subscribe(uri: string): void;
  unsubscribe(uri: string): void;
}

export interface McpSessionOptions {
  readonly sessionId: string;
  readonly management: boolean;
  readonly adopted: boolean;
  readonly hub: ResourceHub | null;
  /** Monotonic ms. */
  readonly now: () => number;
  readonly onEnd: () => void;
}

/** The part of the SDK's Server and McpServer a session needs. */
export interface SessionServer {
  connect(transport: Transport): Promise<void>;
  close(): Promise<void>;
}

/**
 * One MCP session: the SDK's transport answers calls as JSON on their own POST, and what the
 * server says unasked leaves on the GET stream, which this class writes itself because the SDK's
 * would buffer without limit for a client that does not read.
 */
export class McpSession implements SessionContext {
  private readonly inner: WebStandardStreamableHTTPServerTransport;
  private readonly hub: HubSession | null;
  private stream: SseStream | null = null;
  /** Where the current stream began; what was told since is told again if it breaks. */
  private streamStart = 0;
  private server: SessionServer | null = null;
  private inFlight = 0;
  private touchedAt: number;
  /** Requests whose caller no longer wants the answer. */
  private readonly cancelled = new Set<string | number>();

  readonly sessionId: string;
  readonly management: boolean;
  readonly adopted: boolean;
  private readonly now: () => number;
  private readonly onEnd: () => void;

  constructor(options: McpSessionOptions) {
    const { sessionId, hub, now } = options;
    this.sessionId = sessionId;
    this.management = options.management;
    this.adopted = options.adopted;
    this.now = now;
    this.onEnd = options.onEnd;
    this.touchedAt = now();
    this.hub = hub?.attach(() => this.flush()) ?? null;
    this.inner = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => sessionId,
      enableJsonResponse: true,
    });
  }

  subscribe(uri: string): void {
    if (this.hub === null) throw new Error('this server has no subscribable resources');
    this.hub.subscribe(uri);
  }

  unsubscribe(uri: string): void {
    this.hub?.unsubscribe(uri);
  }

  /** Connects the server the endpoint built for this session. */
  async open(server: SessionServer): Promise<void> {
    this.server = server;
    await server.connect(new SessionTransport(this.inner, this));
  }

  /** Initialises an adopted session, as its client did at another server. */
  async resume(request: HttpRequest): Promise<void> {
    const version = request.headers['mcp-protocol-version'];
    const response = await this.inner.handleRequest(
      new Request(`http://session${request.path}`, {
        method: 'POST',
        headers: { accept: 'application/json, text/event-stream', 'content-type': 'application/json' },
      }),
      {
        parsedBody: {
          jsonrpc: '2.0',
          id: 'adopted',
          method: 'initialize',
          params: {
            protocolVersion: typeof version === 'string' ? version : LATEST_PROTOCOL_VERSION,
            capabilities: {},
            clientInfo: { name: 'adopted', version: '0' },
          },
        },
      },
    );
    await response.arrayBuffer();
    if (!response.ok) throw new Error(`the session could not be taken over: ${response.status}`);
  }

  /** How long nothing has used the session, ms; 0 while a stream is open or a call is in flight. */
  idleMs(): number {
    return this.inFlight > 0 || this.stream !== null ? 0 : this.now() - this.touchedAt;
  }

  /** Answers a POST or DELETE. */
  async answer(request: HttpRequest, res: ServerResponse, message: unknown): Promise<void> {
    this.inFlight += 1;
    try {
      const cancels = cancelledId(message);
      const response = await this.inner.handleRequest(
        new Request(`http://session${request.path}`, {
          method: request.method,
          headers: pickHeaders(request),
        }),
        { parsedBody: message },
      );
      if (cancels !== null) await this.releaseCancelled(cancels);
      const id = requestId(message);
      if (id !== null && this.cancelled.delete(id)) {
        res.writeHead(202).end();
        return;
      }
      const body = response.body === null ? null : Buffer.from(await response.arrayBuffer());
      if (res.headersSent || res.destroyed) return;
      res.writeHead(response.status, Object.fromEntries(response.headers));
      res.end(body ?? undefined);
    } finally {
      this.inFlight -= 1;
      this.touchedAt = this.now();
    }
  }

  /** Opens the event stream; one that is already open gives way, as its client has come back. */
  openStream(res: ServerResponse, lastEventId: string | undefined): void {
    const resumed = /^\d{1,15}$/.test(lastEventId ?? '') ? Number(lastEventId) : this.streamStart;
    this.stream?.end();
    const stream = new SseStream(
      res,
      { 'mcp-session-id': this.sessionId },
      () => this.flush(),
      () => {
        if (this.stream !== stream) return;
        this.stream = null;
        this.touchedAt = this.now();
      },
    );
    this.hub?.rewind(resumed);
    this.streamStart = Math.min(resumed, this.hub?.lastSequence ?? 0);
    this.stream = stream;
    this.flush();
  }

  /**
   * Sends a message that answers no call, such as progress. Without an open stream, or to a client
   * that does not read, it is dropped: it would otherwise wait without bound.
   */
  push(message: JSONRPCMessage): void {
    if (this.stream?.writable) this.stream.write(JSON.stringify(message), null);
  }

  /** Ends the event stream; calls in flight go on. */
  endStream(): void {
    this.stream?.end();
  }

  get busy(): boolean {
    return this.inFlight > 0;
  }

  /** Ends the session: running calls are aborted, the stream is closed. Idempotent. */
  async end(): Promise<void> {
    this.hub?.detach();
    this.stream?.end();
    this.onEnd();
    await (this.server?.close() ?? this.inner.close());
  }

  /** Called when the transport closed, also by the client's DELETE. */
  closed(): void {
    this.hub?.detach();
    this.stream?.end();
    this.onEnd();
  }

  private flush(): void {
    while (this.stream?.writable && this.hub !== null) {
      const notice = this.hub.take();
      if (notice === null) return;
      const message =
        notice.kind === 'updated'
          ? { jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri: notice.uri } }
          : { jsonrpc: '2.0', method: 'notifications/resources/list_changed' };
      this.stream.write(JSON.stringify(message), notice.sequence);
    }
  }

  /**
   * Ends the exchange of a cancelled call. The protocol forbids an answer to it, and the transport
   * would therefore hold its POST open for good.
   */
  private async releaseCancelled(id: string | number): Promise<void> {
    this.cancelled.add(id);
    try {
      await this.inner.send({ jsonrpc: '2.0', id, error: { code: RPC.TRANSPORT, message: 'cancelled' } });
    } catch {
      // It had been answered already.
      this.cancelled.delete(id);
    }
  }
}

/** Only what the transport looks at: a request's other headers are no business of a tool. */
function pickHeaders(request: HttpRequest): Record<string, string> {
  const picked: Record<string, string> = {};
  for (const name of ['accept', 'content-type', 'mcp-session-id', 'mcp-protocol-version']) {
    const value = request.headers[name];
    if (typeof value === 'string') picked[name] = value;
  }
  return picked;
}

function requestId(message: unknown): string | number | null {
  const id = field(message, 'id');
  return field(message, 'method') !== undefined && (typeof id === 'string' || typeof id === 'number')
    ? id
    : null;
}

function cancelledId(message: unknown): string | number | null {
  if (field(message, 'method') !== 'notifications/cancelled') return null;
  const id = field(field(message, 'params'), 'requestId');
  return typeof id === 'string' || typeof id === 'number' ? id : null;
}

function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}
