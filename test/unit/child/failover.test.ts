import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  afterFailure,
  beginCall,
  type FailoverState,
  type Failure,
  initialFailover,
  LONGEST_RETRY_AFTER_MS,
} from '../../../child/model/failover.ts';
import { retryAfterOf, statusFailure, transportFailure } from '../../../child/model/http-failure.ts';

const down: Failure = { reason: 'unreachable', final: false, retryAfterMs: null };
const refused: Failure = { reason: 'auth', final: true, retryAfterMs: null };

function begin(state: FailoverState): FailoverState {
  const begun = beginCall(state);
  if (begun === null) throw new Error('every endpoint is excluded');
  return begun;
}

describe('failover', () => {
  test('an endpoint is tried max_attempts times, with growing delays, then the next', () => {
    let state = begin(initialFailover(2, 3));
    const seen: string[] = [];
    for (let failures = 0; failures < 6; failures++) {
      const next = afterFailure(state, down, 0.999);
      state = next.state;
      const { decision } = next;
      seen.push(decision.kind === 'retry' ? `retry ${Math.round(decision.delayMs)}` : decision.kind);
    }
    expect(seen).toEqual(['retry 500', 'retry 1000', 'switch', 'retry 500', 'retry 1000', 'give_up']);
  });

  test('a refused credential is final: never again in this run', () => {
    const first = afterFailure(begin(initialFailover(2, 3)), refused, 0);
    expect(first.decision).toEqual({ kind: 'switch', endpoint: 1 });
    const second = afterFailure(first.state, down, 0);
    expect(second.decision.kind).toBe('retry');
    const later = begin({ ...second.state, current: 0 });
    expect(later.current).toBe(1);
    const last = afterFailure({ ...later, attempts: 2 }, down, 0);
    expect(last.decision.kind).toBe('give_up');
  });

  test('the next call begins where the last one succeeded', () => {
    const switched = afterFailure({ ...begin(initialFailover(3, 1)) }, down, 0).state;
    expect(begin(switched)).toMatchObject({ current: 1, attempts: 0 });
  });

  test('when every endpoint is out there is no call to begin', () => {
    const { state } = afterFailure(begin(initialFailover(1, 3)), refused, 0);
    expect(beginCall(state)).toBeNull();
  });

  test('Retry-After is waited for, never shortened by jitter; one that is too long passes on', () => {
    const state = begin(initialFailover(2, 3));
    const short = afterFailure(state, { ...down, retryAfterMs: 2000 }, 0.5).decision;
    expect(short.kind === 'retry' && short.delayMs).toBeGreaterThanOrEqual(2000);
    const long = afterFailure(state, { ...down, retryAfterMs: LONGEST_RETRY_AFTER_MS + 1 }, 0.5).decision;
    expect(long).toEqual({ kind: 'switch', endpoint: 1 });
  });

  test('every sequence of failures ends, within the attempts there are, and no excluded endpoint is used', () => {
    const failure = fc.record({
      reason: fc.constantFrom('unreachable', 'auth', 'timeout', '5xx', 'other'),
      final: fc.boolean(),
      retryAfterMs: fc.option(fc.nat(120_000)),
    }) as fc.Arbitrary<Failure>;
    const input = fc.tuple(
      fc.integer({ min: 1, max: 5 }),
      fc.integer({ min: 1, max: 4 }),
      fc.infiniteStream(failure),
    );
    fc.assert(
      fc.property(
        input,
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        ([endpoints, attempts, failures], random) => {
          let state: FailoverState | null = beginCall(initialFailover(endpoints, attempts));
          let requests = 0;
          while (state !== null) {
            requests++;
            expect(state.excluded.has(state.current)).toBe(false);
            expect(requests).toBeLessThanOrEqual(endpoints * attempts);
            const { value } = failures.next();
            const next = afterFailure(state, value, random);
            if (next.decision.kind === 'give_up') break;
            if (next.decision.kind === 'retry') expect(next.decision.delayMs).toBeGreaterThanOrEqual(0);
            expect(next.state.current).toBe(next.decision.endpoint);
            state = next.state;
          }
          expect(requests).toBeGreaterThan(0);
        },
      ),
    );
  });
});

describe('how a request failed', () => {
  test.each([
    [401, { reason: 'auth', final: true, retryAfterMs: null }],
    [403, { reason: 'auth', final: true, retryAfterMs: null }],
    [429, { reason: 'other', final: false, retryAfterMs: 7000 }],
    [503, { reason: '5xx', final: false, retryAfterMs: 7000 }],
    [529, { reason: '5xx', final: false, retryAfterMs: 7000 }],
    [400, { reason: 'other', final: true, retryAfterMs: 7000 }],
    [404, { reason: 'other', final: true, retryAfterMs: 7000 }],
    [302, { reason: 'other', final: true, retryAfterMs: 7000 }],
  ])('status %d', (status, failure) => {
    expect(statusFailure(status, '', '7', 0).failure).toEqual(failure);
  });

  test('the words of the endpoint are quoted on one line, and cut', () => {
    const message = statusFailure(
      400,
      JSON.stringify({ error: { message: 'bad\n\u001b[31m thing' } }),
      undefined,
      0,
    );
    expect(message.message).toBe('it answered 400: bad [31m thing');
    expect(statusFailure(500, `<html>${'x'.repeat(5000)}`, undefined, 0).message.length).toBeLessThan(400);
    expect(statusFailure(500, '', undefined, 0).message).toBe('it answered 500');
  });

  test('takes a credential out before anything is cut or put on one line', () => {
    const token = 'sk-"two  words"-0123456789';
    const redact = (text: string): string => text.replaceAll(token, '[credential]');
    for (const padding of [0, 280, 290, 299]) {
      const body = JSON.stringify({ error: { message: `${'x'.repeat(padding)}${token} is unknown` } });
      const { message } = statusFailure(401, body, undefined, 0, redact);
      expect(message).not.toMatch(/sk-|two|0123/);
    }
  });

  test.each([
    ['5', 5000],
    ['0', 0],
    ['-3', 0],
    ['Thu, 01 Jan 1970 00:00:10 GMT', 9000],
    ['soon', null],
    ['', null],
    [undefined, null],
  ])('Retry-After %j is %j ms', (header, expected) => {
    expect(retryAfterOf(header, 1000)).toBe(expected);
  });

  test('a bad certificate is final, a refused connection is not', () => {
    const coded = (code: string): Error => Object.assign(new Error('x'), { code });
    expect(transportFailure(coded('CERT_HAS_EXPIRED')).failure).toMatchObject({
      reason: 'unreachable',
      final: true,
    });
    expect(transportFailure(coded('ECONNREFUSED')).failure).toMatchObject({
      reason: 'unreachable',
      final: false,
    });
    expect(transportFailure(coded('UND_ERR_BODY_TIMEOUT')).failure).toMatchObject({ reason: 'timeout' });
    expect(transportFailure(new Error('fetch failed', { cause: coded('ECONNRESET') })).failure.reason).toBe(
      'unreachable',
    );
  });
});
