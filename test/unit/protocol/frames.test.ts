import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseFrameFromChild, parseFrameFromSupervisor } from '../../../protocol/frames.ts';

const USAGE = { tokens_in: 1, tokens_out: 2, steps: 3, subagents: 0 };

describe('control frames', () => {
  test.each([
    ['ready', { protocol_version: 1, pid: 7 }],
    ['run.progress', { run_id: 'r', kind: 'step', usage: USAGE }],
    ['run.result', { run_id: 'r', status: 'completed', result: '', has_usable_partial: false, usage: USAGE }],
    ['session.turn', { run_id: 'r', sequence: 1, status: 'stalled', result: '', usage: USAGE }],
    ['log', { level: 'info', event: 'loop.start', fields: {} }],
    ['request.cancel', { id: 4 }],
  ])('%s is read from a child', (method, params) => {
    const frame = parseFrameFromChild({ jsonrpc: '2.0', method, params });
    expect(frame).toEqual({ type: 'notification', body: { method, params } });
  });

  test.each([
    ['session.wake', { run_id: 'r', sequence: 1, uris: ['a'], messages: [] }],
    ['run.cancel', { run_id: 'r', reason: 'x' }],
    ['run.wind_down', { run_id: 'r', deadline_ms: 5 }],
    ['run.pause', { run_id: 'r' }],
    ['run.resume', { run_id: 'r' }],
    ['request.progress', { id: 1, note: '' }],
  ])('%s is read from a supervisor', (method, params) => {
    const frame = parseFrameFromSupervisor({ jsonrpc: '2.0', method, params });
    expect(frame).toEqual({ type: 'notification', body: { method, params } });
  });

  test('requests and responses are told apart by method and id', () => {
    expect(parseFrameFromSupervisor({ id: 1, method: 'ping' }).type).toBe('request');
    expect(parseFrameFromChild({ id: 1, result: {} }).type).toBe('response');
    expect(parseFrameFromChild({ id: 1, error: { code: -1, message: 'no' } }).type).toBe('response');
    const call = { run_id: 'r', name: 'a__b', arguments: {}, timeout_ms: 5 };
    expect(parseFrameFromChild({ id: 1, method: 'tool.call', params: call }).type).toBe('request');
  });

  test('a child cannot say what only a supervisor says, and the other way round', () => {
    expect(() =>
      parseFrameFromChild({ method: 'run.cancel', params: { run_id: 'r', reason: '' } }),
    ).toThrow();
    expect(() =>
      parseFrameFromSupervisor({ method: 'ready', params: { protocol_version: 1, pid: 1 } }),
    ).toThrow();
    expect(() => parseFrameFromChild({ id: 1, method: 'ping' })).toThrow();
  });

  test('keys it does not know are ignored, so that either side may grow', () => {
    const frame = parseFrameFromChild({
      method: 'request.cancel',
      params: { id: 1, later: true },
      extra: 1,
    });
    expect(frame.body).toEqual({ method: 'request.cancel', params: { id: 1 } });
  });

  test('no JSON value makes a parser do anything but return a frame or throw a ZodError', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        for (const parse of [parseFrameFromChild, parseFrameFromSupervisor]) {
          try {
            expect(['notification', 'request', 'response']).toContain(parse(value).type);
          } catch (error) {
            expect(error).toHaveProperty('issues');
          }
        }
      }),
    );
  });
});
