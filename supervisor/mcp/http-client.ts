import { readFileSync } from 'node:fs';
import { rootCertificates } from 'node:tls';
import { Agent, Response as UndiciResponse, fetch as undiciFetch } from 'undici';
import { AgentdError, errorMessage } from '../../protocol/errors.ts';
import { readHeaderSecret, type SecretRef } from '../config/secret.ts';
import { SizeGuard, SseGuard } from './sse-guard.ts';

/**
 * The HTTP side of one MCP connection: keep-alive pool, late-read headers, extra certificate
 * authorities, bounded bodies. No timeouts of its own for answers, because a call that reports
 * progress may take as long as it likes; whoever sends a request aborts it.
 */

export interface HttpClientOptions {
  readonly headers: Readonly<Record<string, string | SecretRef>>;
  /** PEM file of extra certificate authorities, read at each connection. */
  readonly tlsCa: string | null;
  /** Cap on one JSON answer and on one event of a stream, bytes. */
  readonly maxMessageBytes: number;
  /** Longest wait for a TCP or TLS connection, ms. */
  readonly connectTimeoutMs: number;
}

/** How a body ended. `error` is null at a regular end. */
export type BodyEnd = (error: unknown, resumable: boolean) => void;

export class HttpClient {
  private readonly agent: Agent;

  /** @throws AgentdError TLS_UNUSABLE when the certificate file cannot be read */
  constructor(private readonly options: HttpClientOptions) {
    const ca = options.tlsCa === null ? null : readAuthorities(options.tlsCa);
    this.agent = new Agent({
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: {
        timeout: options.connectTimeoutMs,
        // A stream may be silent for hours: let the kernel notice a peer that vanished.
        keepAlive: true,
        keepAliveInitialDelay: 15_000,
        ...(ca === null ? {} : { ca: [...rootCertificates, ca] }),
      },
    });
  }

  /**
   * Sends one request.
   *
   * @throws Error whose message is the network's reason; AgentdError of kind configuration when a secret cannot be read
   */
  async send(
    url: string | URL,
    init: RequestInit | undefined,
    signal: AbortSignal,
    ended: BodyEnd,
  ): Promise<Response> {
    const headers: Record<string, string> = Object.fromEntries(new Headers(init?.headers));
    for (const [name, value] of Object.entries(this.options.headers)) {
      headers[name.toLowerCase()] = typeof value === 'string' ? value : readHeaderSecret(value);
    }
    const { target, authorization } = splitCredentials(url);
    if (authorization !== null) headers.authorization ??= authorization;
    try {
      const response = await undiciFetch(target, {
        method: init?.method ?? 'GET',
        headers,
        body: typeof init?.body === 'string' ? init.body : null,
        redirect: init?.redirect ?? 'manual',
        signal,
        dispatcher: this.agent,
      });
      return this.guarded(response, ended);
    } catch (error) {
      if (signal.aborted) throw error;
      throw new Error(networkReason(error), { cause: error });
    }
  }

  /** Ends every socket at once. */
  async destroy(): Promise<void> {
    await this.agent.destroy();
  }

  private guarded(response: UndiciResponse, ended: BodyEnd): Response {
    const type = response.headers.get('content-type') ?? '';
    const max = this.options.maxMessageBytes;
    const guard = type.startsWith('text/event-stream') ? new SseGuard(max) : new SizeGuard(max);
    const reader = response.body?.getReader();
    let over = false;
    const finish = (error: unknown): void => {
      if (over) return;
      over = true;
      ended(error, guard.resumable);
    };
    if (reader === undefined) {
      finish(null);
      return asGlobal(response);
    }
    const body = new ReadableStream<Uint8Array>({
      async pull(controller) {
        try {
          const { done, value } = await reader.read();
          if (done) {
            controller.close();
            finish(null);
            return;
          }
          guard.feed(value);
          controller.enqueue(value);
        } catch (error) {
          controller.error(error);
          finish(error);
          // Already failing: the reader's own fate changes nothing.
          await reader.cancel().catch(() => undefined);
        }
      },
      async cancel(reason) {
        finish(null);
        await reader.cancel(reason);
      },
    });
    const { status, statusText } = response;
    return asGlobal(new UndiciResponse(body, { status, statusText, headers: response.headers }));
  }
}

/** The global and undici's own Response are the same interface under two type names. */
function asGlobal(response: UndiciResponse): Response {
  return response as unknown as Response;
}

function readAuthorities(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new AgentdError('TLS_UNUSABLE', `certificate file ${path} cannot be read: ${errorMessage(error)}`, {
      cause: error,
    });
  }
}

/** fetch refuses a URL with credentials in it; they belong into a header. */
function splitCredentials(url: string | URL): { target: URL; authorization: string | null } {
  const target = new URL(url);
  if (target.username === '' && target.password === '') return { target, authorization: null };
  const pair = `${decodeURIComponent(target.username)}:${decodeURIComponent(target.password)}`;
  target.username = '';
  target.password = '';
  return { target, authorization: `Basic ${Buffer.from(pair).toString('base64')}` };
}

/** The innermost reason of a failed fetch: `connect ECONNREFUSED 127.0.0.1:80`, not `fetch failed`. */
export function networkReason(error: unknown): string {
  let inner = error;
  while (inner instanceof Error && inner.cause instanceof Error) inner = inner.cause;
  if (inner instanceof AggregateError && inner.errors[0] instanceof Error) inner = inner.errors[0];
  if (!(inner instanceof Error)) return String(inner);
  const code = 'code' in inner && typeof inner.code === 'string' ? inner.code : '';
  return inner.message === '' ? code : inner.message;
}
