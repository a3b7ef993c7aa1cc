import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import type { JSONRPCMessage, RequestId } from '@modelcontextprotocol/sdk/types.js';
import { errorMessage } from '../../protocol/errors.ts';
import { HttpClient, type HttpClientOptions } from './http-client.ts';
import type { LinkEvents } from './link.ts';

/** Answers whose stream the server leaves open after the response; the oldest are cut past this. */
const LINGERING = 64;
/** Longest a notification may take to be accepted, ms. */
const NOTIFICATION_MS = 5_000;
/** JSON-RPC code of the error that stands in for an answer whose stream broke. */
export const STREAM_BROKE = -32_098;

/**
 * Streamable HTTP through the SDK's transport, with what a supervisor needs around it: it knows
 * whether the server can still be heard (the GET stream), whether the session is gone, and it
 * leaves no request open that nobody waits for any more.
 */
export class HttpTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;

  /** Settles when the server answered the request for its event stream: open, or not offered. */
  readonly streamSettled: Promise<void>;
  /** Why updates cannot be heard, or null. */
  deaf: string | null = null;

  private readonly inner: StreamableHTTPClientTransport;
  private readonly client: HttpClient;
  private readonly open = new Set<AbortController>();
  private readonly unanswered = new Map<RequestId, AbortController>();
  private readonly lingering = new Set<AbortController>();
  private settleStream: () => void = () => undefined;
  private streams = 0;
  private closed = false;

  constructor(
    url: string,
    options: HttpClientOptions,
    private readonly events: LinkEvents,
  ) {
    this.client = new HttpClient(options);
    this.streamSettled = new Promise((resolve) => {
      this.settleStream = resolve;
    });
    this.inner = new StreamableHTTPClientTransport(new URL(url), {
      fetch: (target, init) => this.fetch(target, init),
      // The stream is reopened soon after a regular end; when that fails the connection is broken.
      reconnectionOptions: {
        initialReconnectionDelay: 200,
        maxReconnectionDelay: 2_000,
        reconnectionDelayGrowFactor: 2,
        maxRetries: 2,
      },
    });
    this.inner.onclose = () => this.onclose?.();
    this.inner.onerror = (error) => this.onerror?.(error);
    this.inner.onmessage = (message) => this.received(message);
  }

  get sessionId(): string | undefined {
    return this.inner.sessionId;
  }

  setProtocolVersion(version: string): void {
    this.inner.setProtocolVersion(version);
  }

  start(): Promise<void> {
    return this.inner.start();
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const cancelled = cancelledRequest(message);
    try {
      await this.inner.send(message);
    } finally {
      // The SDK forgets a cancelled request but leaves its HTTP exchange open.
      if (cancelled !== undefined) this.unanswered.get(cancelled)?.abort();
    }
  }

  /** Ends the session at the server, waiting at most `budgetMs`. Failing to is not an error. */
  async terminate(budgetMs: number): Promise<void> {
    if (this.closed || budgetMs <= 0) return;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, budgetMs);
    });
    await Promise.race([this.inner.terminateSession().catch(() => undefined), late]);
    clearTimeout(timer);
  }

  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    for (const controller of [...this.open]) controller.abort();
    this.settleStream();
    await this.inner.close();
    await this.client.destroy();
  }

  private received(message: JSONRPCMessage): void {
    this.events.heard();
    if (!('method' in message) && message.id !== undefined) this.answered(message.id);
    this.onmessage?.(message);
  }

  private answered(id: RequestId): void {
    const controller = this.unanswered.get(id);
    if (controller === undefined) return;
    this.unanswered.delete(id);
    if (!this.open.has(controller)) return;
    this.lingering.add(controller);
    if (this.lingering.size <= LINGERING) return;
    for (const oldest of this.lingering) {
      oldest.abort();
      break;
    }
  }

  private async fetch(url: string | URL, init?: RequestInit): Promise<Response> {
    if (this.closed) throw new Error('the connection is closed');
    const controller = new AbortController();
    this.open.add(controller);
    try {
      if (init?.method === 'POST') return await this.post(url, init, controller);
      if (init?.method === 'DELETE') return await this.exchange(url, init, controller);
      return await this.openStream(url, init, controller);
    } catch (error) {
      this.release(controller);
      throw error;
    }
  }

  private exchange(url: string | URL, init: RequestInit | undefined, controller: AbortController) {
    return this.client.send(url, init, controller.signal, () => this.release(controller));
  }

  private async post(url: string | URL, init: RequestInit, controller: AbortController): Promise<Response> {
    const id = requestId(init.body);
    const inSession = new Headers(init.headers).has('mcp-session-id');
    if (id !== undefined) this.unanswered.set(id, controller);
    const timer = id === undefined ? setTimeout(() => controller.abort(), NOTIFICATION_MS) : undefined;
    try {
      const response = await this.client.send(url, init, controller.signal, (error, resumable) => {
        this.release(controller);
        if (id !== undefined) setImmediate(() => this.answerEnded(id, controller, error, resumable));
      });
      if (response.ok) return response;
      if (id !== undefined) this.unanswered.delete(id);
      return await this.refused(response, inSession);
    } catch (error) {
      if (id !== undefined) this.unanswered.delete(id);
      if (!controller.signal.aborted) this.events.suspect(errorMessage(error));
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  /** A status that is no success. 404 says by rule that the session is gone; some servers say 400. */
  private async refused(response: Response, inSession: boolean): Promise<Response> {
    const { status, statusText } = response;
    const text = (await response.text().catch(() => '')).slice(0, 300);
    if (inSession && (status === 404 || (status === 400 && /session/i.test(text)))) {
      this.broken(`the server no longer knows the session (${status})`);
    }
    return new Response(text, { status, statusText, headers: response.headers });
  }

  /** The body of an answer ended. Without the answer in it, the caller must not wait for its timeout. */
  private answerEnded(id: RequestId, controller: AbortController, error: unknown, resumable: boolean): void {
    if (this.closed || this.unanswered.get(id) !== controller) return;
    // A stream whose events carry ids is resumed by the SDK and may still bring the answer.
    if (resumable && !controller.signal.aborted) return;
    this.unanswered.delete(id);
    if (controller.signal.aborted) return;
    const reason = error === null ? 'the answer ended before its result' : errorMessage(error);
    this.onmessage?.({ jsonrpc: '2.0', id, error: { code: STREAM_BROKE, message: reason } });
    if (error !== null) this.events.suspect(reason);
  }

  private async openStream(
    url: string | URL,
    init: RequestInit | undefined,
    controller: AbortController,
  ): Promise<Response> {
    const headers = new Headers(init?.headers);
    const response = await this.exchange(url, init, controller).catch((error: unknown) => {
      this.broken(`the event stream cannot be opened: ${errorMessage(error)}`);
      throw error;
    });
    const type = response.headers.get('content-type') ?? '';
    if (response.ok && type.startsWith('text/event-stream')) {
      this.streams += 1;
      this.deaf = null;
      this.settleStream();
      // Without an event id the server cannot replay what was sent while nobody listened.
      if (this.streams > 1 && !headers.has('last-event-id')) this.events.gap();
      return response;
    }
    const offersNone = response.status === 405 || (this.streams === 0 && !headers.has('mcp-session-id'));
    if (response.ok || offersNone) {
      await response.body?.cancel();
      this.deaf = 'the server offers no event stream';
      this.settleStream();
      return new Response(null, { status: 405 });
    }
    this.broken(`the event stream was refused with status ${response.status}`);
    return response;
  }

  private release(controller: AbortController): void {
    this.open.delete(controller);
    this.lingering.delete(controller);
  }

  private broken(reason: string): void {
    this.settleStream();
    if (!this.closed) this.events.broken(reason);
  }
}

/** The id of the request in a POST body; undefined for notifications and responses. */
function requestId(body: unknown): RequestId | undefined {
  if (typeof body !== 'string') return undefined;
  const message: unknown = JSON.parse(body);
  if (typeof message !== 'object' || message === null || !('method' in message) || !('id' in message)) {
    return undefined;
  }
  return typeof message.id === 'number' || typeof message.id === 'string' ? message.id : undefined;
}

function cancelledRequest(message: JSONRPCMessage): RequestId | undefined {
  if (!('method' in message) || message.method !== 'notifications/cancelled') return undefined;
  const id = message.params?.requestId;
  return typeof id === 'number' || typeof id === 'string' ? id : undefined;
}
