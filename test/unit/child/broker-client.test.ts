import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { BrokerClient } from '../../../child/tools/broker-client.ts';
import type { ChildRequest } from '../../../protocol/frames.ts';
import { encodeFrame } from '../../../protocol/ndjson.ts';

function client() {
  const sent: ChildRequest[] = [];
  const cancelled: number[] = [];
  const broker = new BrokerClient('run-1', {
    request: (message) => sent.push(message),
    cancelRequest: (id) => cancelled.push(id),
  });
  return { broker, sent, cancelled, stop: new AbortController() };
}

describe('broker client', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    expect(vi.getTimerCount()).toBe(0);
    vi.useRealTimers();
  });

  test('a call is answered by the response with its id', async () => {
    const { broker, sent, stop } = client();
    const first = broker.callTool('a', { x: 1 }, 1000, stop.signal);
    const second = broker.callSelf('b', {}, stop.signal);
    expect(sent).toEqual([
      {
        id: 1,
        method: 'tool.call',
        params: { run_id: 'run-1', name: 'a', arguments: { x: 1 }, timeout_ms: 1000 },
      },
      { id: 2, method: 'self.call', params: { run_id: 'run-1', name: 'b', arguments: {} } },
    ]);
    broker.answer({ id: 2, result: { text: 'two', is_error: false } });
    broker.answer({ id: 1, result: { text: 'one', is_error: false } });
    expect(await first).toEqual({ text: 'one', is_error: false });
    expect(await second).toEqual({ text: 'two', is_error: false });
    expect(broker.inFlight).toBe(0);
  });

  test('no answer and no progress in time cancels the call; progress starts the time again', async () => {
    const { broker, cancelled, stop } = client();
    const outcome = broker.callTool('slow', {}, 1000, stop.signal);
    for (let minute = 0; minute < 60; minute++) {
      vi.advanceTimersByTime(900);
      broker.progress(1);
    }
    expect(broker.inFlight).toBe(1);
    vi.advanceTimersByTime(1000);
    expect(await outcome).toMatchObject({
      is_error: true,
      text: expect.stringContaining('slow gave no answer'),
    });
    expect(cancelled).toEqual([1]);
  });

  test('a stopped run cancels its calls and makes no more', async () => {
    const { broker, cancelled, sent, stop } = client();
    const open = broker.callSelf('a', {}, stop.signal);
    stop.abort();
    expect((await open).is_error).toBe(true);
    expect((await broker.callTool('b', {}, 10, stop.signal)).is_error).toBe(true);
    expect(cancelled).toEqual([1]);
    expect(sent).toHaveLength(1);
  });

  test('a second answer, an answer to nothing and late progress are ignored', async () => {
    const { broker, stop } = client();
    const call = broker.callTool('a', {}, 1000, stop.signal);
    broker.answer({ id: 77, result: {} });
    broker.answer({ id: 1, result: { text: 'one', is_error: false } });
    broker.answer({ id: 1, result: { text: 'two', is_error: false } });
    broker.progress(1);
    expect((await call).text).toBe('one');
  });

  test('an error response, or a result that is none, is an error result', async () => {
    const { broker, stop } = client();
    const refused = broker.callTool('a', {}, 1000, stop.signal);
    const odd = broker.callTool('b', {}, 1000, stop.signal);
    broker.answer({ id: 1, error: { code: -1, message: 'not in scope' } });
    broker.answer({ id: 2, result: 'text' });
    expect(await refused).toEqual({ text: 'not in scope', is_error: true });
    expect(await odd).toEqual({ text: 'the supervisor sent no tool result', is_error: true });
  });

  test('arguments past the frame cap are refused as a result, not thrown', async () => {
    const broker = new BrokerClient('run-1', {
      request: (message) => void encodeFrame(message, 100),
      cancelRequest: () => undefined,
    });
    const outcome = await broker.callTool('a', { x: 'y'.repeat(200) }, 1000, new AbortController().signal);
    expect(outcome).toEqual({ text: 'the arguments of a are too large', is_error: true });
    expect(broker.inFlight).toBe(0);
  });
});
