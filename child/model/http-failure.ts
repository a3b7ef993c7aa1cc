import { errorMessage } from '../../protocol/errors.ts';
import type { Failure } from './failover.ts';
import { isRecord } from './model.ts';

/** A request that brought no usable answer. */
export class RequestFailure extends Error {
  readonly failure: Failure;

  constructor(message: string, failure: Failure) {
    super(message);
    this.name = 'RequestFailure';
    this.failure = failure;
  }
}

/** Longest piece of an endpoint's own words that is quoted, characters. */
const QUOTE_LENGTH = 300;
/** Certificates do not become valid by asking again; nor does a request that cannot be written. */
const TLS_CODES = /^(ERR_TLS|ERR_SSL|CERT_|SELF_SIGNED|DEPTH_ZERO|UNABLE_TO_)/;

/**
 * An answer with an error status. 401 and 403 are final, 429 and 5xx are worth another try.
 *
 * @param redact takes credentials out, before anything is cut or put on one line
 */
export function statusFailure(
  status: number,
  body: string,
  retryAfter: string | undefined,
  nowMs: number,
  redact: (text: string) => string = (text) => text,
): RequestFailure {
  const message = `it answered ${status}${quote(body, redact)}`;
  const retryAfterMs = retryAfterOf(retryAfter, nowMs);
  if (status === 401 || status === 403) {
    return new RequestFailure(message, { reason: 'auth', final: true, retryAfterMs: null });
  }
  if (status >= 500) return new RequestFailure(message, { reason: '5xx', final: false, retryAfterMs });
  const again = status === 429 || status === 408 || status === 409 || status === 425;
  return new RequestFailure(message, { reason: 'other', final: !again, retryAfterMs });
}

/** A connection that could not be made, or broke. */
export function transportFailure(error: unknown): RequestFailure {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const code = isRecord(cause) ? String(cause.code ?? '') : '';
  const text = errorMessage(cause) === '' ? code : errorMessage(cause);
  if (code === 'UND_ERR_HEADERS_TIMEOUT' || code === 'UND_ERR_BODY_TIMEOUT') {
    return new RequestFailure('it took too long to answer', {
      reason: 'timeout',
      final: false,
      retryAfterMs: null,
    });
  }
  return new RequestFailure(text, {
    reason: 'unreachable',
    final: TLS_CODES.test(code) || code === 'UND_ERR_INVALID_ARG',
    retryAfterMs: null,
  });
}

/** Seconds, or an HTTP date; ms from now. */
export function retryAfterOf(header: string | undefined, nowMs: number): number | null {
  if (header === undefined || header.trim() === '') return null;
  const seconds = Number(header);
  if (Number.isFinite(seconds)) return Math.max(0, seconds * 1000);
  const date = Date.parse(header);
  return Number.isNaN(date) ? null : Math.max(0, date - nowMs);
}

/** What the endpoint says went wrong, on one line. */
function quote(body: string, redact: (text: string) => string): string {
  let text = body;
  try {
    const value: unknown = JSON.parse(body);
    const error = isRecord(value) ? value.error : undefined;
    if (isRecord(error) && typeof error.message === 'string') text = error.message;
    else if (typeof error === 'string') text = error;
  } catch {
    // Not JSON: quoted as it is.
  }
  const said = redact(text);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: a peer's text must not steer a terminal
  const line = said.replace(/[\s\u0000-\u001f\u007f]+/g, ' ').trim();
  return line === '' ? '' : `: ${line.slice(0, QUOTE_LENGTH)}`;
}
