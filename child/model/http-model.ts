import { setTimeout as delay } from 'node:timers/promises';
import type { Dispatcher } from 'undici';
import { AgentdError } from '../../protocol/errors.ts';
import type { ModelBlock } from '../../protocol/frames.ts';
import { type Endpoint, resolveEndpoint } from './endpoint.ts';
import { afterFailure, beginCall, type FailoverState, initialFailover } from './failover.ts';
import type { HeldConnection } from './held-connection.ts';
import { RequestFailure, statusFailure, transportFailure } from './http-failure.ts';
import type { CompleteOptions, Model, ModelAnswer, ModelRequest } from './model.ts';

/** Largest answer read from an endpoint, bytes. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;
const KEEP_ALIVE_MS = 60_000;
/** How often a request in flight is reported; well below any sensible no-progress limit. */
const WAITING_NOTE_MS = 30_000;

export interface HttpModelOptions {
  readonly block: ModelBlock;
  /** W3C trace context of the run; each request is a span of its own below it. */
  readonly traceparent: string;
  readonly now: () => number;
  /** In [0, 1). */
  readonly random: () => number;
  /** A connection that has been held for the first request. */
  readonly held?: HeldConnection | null;
}

/** A model behind HTTP endpoints, tried in order. undici is loaded with the first one. */
export async function connectHttpModel(options: HttpModelOptions): Promise<HttpModel> {
  const { Agent, request } = await import('undici');
  const { modelConnector, withHeld } = await import('./http-connector.ts');
  const { block } = options;
  // A file that was named is checked whatever the endpoints speak.
  const speaksTls = block.endpoints.some(({ url }) => url.startsWith('https:'));
  const connect = await modelConnector(block.tls_ca, speaksTls, block.timeout_ms);
  const held = withHeld(connect, options.held ?? null);
  const dispatcher = new Agent({
    keepAliveTimeout: KEEP_ALIVE_MS,
    connect: held.connect,
    // The whole request has one limit of its own, below.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  let first = true;
  return new HttpModel(options, block.endpoints.map(resolveEndpoint), async (url, init) => {
    const wasFirst = first;
    first = false;
    try {
      return await request(url, { ...init, dispatcher });
    } catch (error) {
      // A connection that was held may have died unnoticed: that says nothing about the endpoint.
      if (!wasFirst || !held.used() || init.signal.aborted) throw error;
      return await request(url, { ...init, dispatcher });
    }
  });
}

export type SendRequest = (
  url: URL,
  init: { method: 'POST'; headers: Record<string, string>; body: string; signal: AbortSignal },
) => Promise<Dispatcher.ResponseData>;

export class HttpModel implements Model {
  private failover: FailoverState;
  /** Endpoints that are out for good, and why. */
  private readonly refusals = new Map<number, RequestFailure>();

  constructor(
    private readonly options: HttpModelOptions,
    private readonly endpoints: readonly Endpoint[],
    private readonly send: SendRequest,
  ) {
    this.failover = initialFailover(endpoints.length, options.block.max_attempts);
  }

  async complete(request: ModelRequest, options: CompleteOptions): Promise<ModelAnswer> {
    const problems = new Map<number, RequestFailure>();
    const begun = beginCall(this.failover);
    if (begun === null) throw this.exhausted(this.refusals);
    let state = begun;
    for (;;) {
      const index = state.current;
      const started = this.options.now();
      const span = childSpan(this.options.traceparent, this.options.random);
      const spanId = span.split('-')[2];
      try {
        const answer = await this.attempt(index, request, span, options);
        this.failover = state;
        const { usage, model } = answer;
        options.onCall({
          endpoint: index,
          durationMs: this.options.now() - started,
          usage,
          model,
          spanId,
          failure: null,
        });
        return answer;
      } catch (error) {
        options.signal.throwIfAborted();
        const failure = error instanceof RequestFailure ? error : transportFailure(error);
        const message = this.redact(index, failure.message);
        problems.set(index, new RequestFailure(message, failure.failure));
        if (failure.failure.final) this.refusals.set(index, new RequestFailure(message, failure.failure));
        options.onCall({
          endpoint: index,
          durationMs: this.options.now() - started,
          usage: null,
          model: this.options.block.model ?? 'default',
          spanId,
          failure: { reason: failure.failure.reason, message },
        });
        const next = afterFailure(state, failure.failure, this.options.random());
        state = next.state;
        if (next.decision.kind === 'give_up') {
          this.failover = state;
          throw this.exhausted(new Map([...this.refusals, ...problems]));
        }
        if (next.decision.kind === 'retry') {
          await delay(next.decision.delayMs, undefined, { signal: options.signal });
        }
      }
    }
  }

  private async attempt(
    index: number,
    request: ModelRequest,
    traceparent: string,
    { onWaiting, signal: stop }: CompleteOptions,
  ): Promise<ModelAnswer> {
    const endpoint = this.endpoints[index];
    if (endpoint === undefined) throw new RangeError(`no endpoint ${index}`);
    const { block } = this.options;
    stop.throwIfAborted();
    const abort = new AbortController();
    const onStop = (): void => abort.abort(stop.reason);
    stop.addEventListener('abort', onStop, { once: true });
    const timeout = new RequestFailure(`it did not answer within ${block.timeout_ms} ms`, {
      reason: 'timeout',
      final: false,
      retryAfterMs: null,
    });
    const timer = setTimeout(() => abort.abort(timeout), Math.min(block.timeout_ms, 2 ** 31 - 1));
    onWaiting();
    const waiting = setInterval(onWaiting, WAITING_NOTE_MS);
    try {
      const response = await this.send(endpoint.url, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          accept: 'application/json',
          'user-agent': 'agentd',
          traceparent,
          ...endpoint.format.headers(endpoint.token),
        },
        body: JSON.stringify(endpoint.format.body(request, block.model)),
        signal: abort.signal,
      });
      const text = await readBounded(response.body);
      if (response.statusCode !== 200) {
        const retryAfter = response.headers['retry-after'];
        const redact = (said: string): string => this.redact(index, said);
        throw statusFailure(response.statusCode, text, firstOf(retryAfter), Date.now(), redact);
      }
      const answer = endpoint.format.read(parseJson(text), block.model);
      if (answer === null) throw unusable('its answer is no answer of this API');
      return answer;
    } finally {
      clearTimeout(timer);
      clearInterval(waiting);
      stop.removeEventListener('abort', onStop);
    }
  }

  /** An endpoint may quote the credential it refuses (invariant 9). */
  private redact(index: number, message: string): string {
    const token = this.endpoints[index]?.token;
    if (token === undefined || token === '') return message;
    const escaped = JSON.stringify(token).slice(1, -1);
    return message.replaceAll(token, '[credential]').replaceAll(escaped, '[credential]');
  }

  private exhausted(problems: ReadonlyMap<number, RequestFailure>): AgentdError {
    const list = [...problems].map(
      ([index, problem]) => `${this.endpoints[index]?.label ?? `endpoint ${index}`}: ${problem.message}`,
    );
    const reasons = [...problems.values()].map((problem) => problem.failure);
    const message = `no model endpoint can be used: ${list.join('; ')}`;
    if (reasons.every((failure) => failure.reason === 'auth')) {
      return new AgentdError('INTELLIGENCE_AUTH', message);
    }
    if (reasons.every((failure) => failure.reason === 'other' && failure.final)) {
      return new AgentdError('INTELLIGENCE_REJECTED', message);
    }
    return new AgentdError('INTELLIGENCE_UNREACHABLE', message);
  }
}

function unusable(message: string): RequestFailure {
  return new RequestFailure(message, { reason: 'other', final: false, retryAfterMs: null });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw unusable('its answer is not JSON');
  }
}

async function readBounded(body: Dispatcher.ResponseData['body']): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    const piece = chunk as Buffer;
    bytes += piece.length;
    if (bytes > MAX_ANSWER_BYTES) {
      body.destroy();
      throw unusable(`its answer is larger than ${MAX_ANSWER_BYTES} bytes`);
    }
    chunks.push(piece);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function firstOf(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header;
}

/** A span below the run's; the trace id and flags are kept. */
function childSpan(traceparent: string, random: () => number): string {
  const parts = traceparent.split('-');
  if (parts.length !== 4) return traceparent;
  const word = (): string =>
    Math.floor(random() * 2 ** 32)
      .toString(16)
      .padStart(8, '0');
  return `${parts[0]}-${parts[1]}-${word()}${word()}-${parts[3]}`;
}
