import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { AgentdError } from '../../../protocol/errors.ts';
import type { ConnectionEvent } from '../../../supervisor/mcp/connection-machine.ts';
import { Heartbeat } from '../../../supervisor/mcp/heartbeat.ts';
import { systemClock } from '../../../supervisor/reactor/clock.ts';

function setUp(ping: () => Promise<void>) {
  const events: ConnectionEvent[] = [];
  const peer = { ping: vi.fn(ping) };
  const heartbeat = new Heartbeat(1_000, systemClock, (event) => events.push(event));
  return { heartbeat, peer, events, types: () => events.map(({ type }) => type) };
}

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe('the heartbeat of a connection', () => {
  it('asks a silent peer, and leaves one alone that speaks', async () => {
    const { heartbeat, peer, types } = setUp(async () => undefined);
    heartbeat.start(peer);
    await vi.advanceTimersByTimeAsync(3_500);
    expect(types()).toEqual(['ping_ok', 'ping_ok', 'ping_ok']);
    for (let n = 0; n < 20; n++) {
      heartbeat.heard();
      await vi.advanceTimersByTimeAsync(500);
    }
    expect(peer.ping.mock.calls.length).toBeLessThanOrEqual(4);
    heartbeat.stop();
    expect(vi.getTimerCount()).toBe(0);
  });

  it('tells silence from an end, and takes an error for an answer', async () => {
    const failing = (code: 'MCP_TIMEOUT' | 'MCP_PROTOCOL' | 'MCP_UNAVAILABLE') => async () => {
      throw new AgentdError(code, 'no');
    };
    for (const [code, type] of [
      ['MCP_TIMEOUT', 'ping_missed'],
      ['MCP_PROTOCOL', 'ping_ok'],
      ['MCP_UNAVAILABLE', 'broken'],
    ] as const) {
      const { heartbeat, peer, types } = setUp(failing(code));
      heartbeat.start(peer);
      await vi.advanceTimersByTimeAsync(1_100);
      expect(types()).toEqual([type]);
      heartbeat.stop();
    }
  });

  it('asks at once when a request failed, but only once at a time', async () => {
    const { heartbeat, peer, types } = setUp(() => new Promise((resolve) => setTimeout(resolve, 300)));
    heartbeat.start(peer);
    heartbeat.askNow();
    heartbeat.askNow();
    await vi.advanceTimersByTimeAsync(310);
    expect(peer.ping).toHaveBeenCalledTimes(1);
    expect(types()).toEqual(['ping_ok']);
    heartbeat.stop();
  });

  it('says nothing about a peer it was taken off', async () => {
    const { heartbeat, peer, types } = setUp(() => new Promise((resolve) => setTimeout(resolve, 300)));
    heartbeat.start(peer);
    heartbeat.askNow();
    heartbeat.stop();
    await vi.advanceTimersByTimeAsync(5_000);
    expect(types()).toEqual([]);
    expect(vi.getTimerCount()).toBe(0);
  });
});
