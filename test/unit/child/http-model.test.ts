import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { resolveEndpoint } from '../../../child/model/endpoint.ts';
import { HttpModel, type SendRequest } from '../../../child/model/http-model.ts';
import type { CallReport, ModelRequest } from '../../../child/model/model.ts';

const REQUEST: ModelRequest = {
  system: '',
  messages: [],
  tools: [],
  task: { sequence: 1, uri: '', server: '' },
  tokensLeft: 1,
};

function model(send: SendRequest, timeoutMs: number, attempts: number) {
  const block = { endpoints: [{ url: 'https://h' }], timeout_ms: timeoutMs, max_attempts: attempts };
  const options = { block, traceparent: '', now: () => performance.now(), random: () => 0 };
  return new HttpModel(options, block.endpoints.map(resolveEndpoint), send);
}

/** A request nobody answers; it ends when it is aborted. */
const silent: SendRequest = (_url, { signal }) =>
  new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });

describe('HTTP model', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    expect(vi.getTimerCount()).toBe(0);
    vi.useRealTimers();
  });

  test('H17: a long request is reported while it is in flight, and no longer than its own limit', async () => {
    const onWaiting = vi.fn();
    const calls: CallReport[] = [];
    const signal = new AbortController().signal;
    const work = model(silent, 120_000, 1).complete(REQUEST, {
      signal,
      onWaiting,
      onCall: (report) => calls.push(report),
    });
    const failed = expect(work).rejects.toMatchObject({ code: 'INTELLIGENCE_UNREACHABLE' });
    await vi.advanceTimersByTimeAsync(119_999);
    expect(onWaiting).toHaveBeenCalledTimes(4);
    expect(calls).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    await failed;
    expect(calls).toMatchObject([{ failure: { reason: 'timeout' } }]);
    await vi.advanceTimersByTimeAsync(600_000);
    expect(onWaiting).toHaveBeenCalledTimes(4);
  });

  test('a stop ends the request at once and leaves no timer behind', async () => {
    const stop = new AbortController();
    const work = model(silent, 120_000, 3).complete(REQUEST, {
      signal: stop.signal,
      onWaiting: () => undefined,
      onCall: () => {
        throw new Error('a stopped request is no failure of the endpoint');
      },
    });
    const failed = expect(work).rejects.toBe('enough');
    await vi.advanceTimersByTimeAsync(10);
    stop.abort('enough');
    await failed;
  });
});
