import { describe, expect, it } from 'vitest';
import type { ToolDescriptor } from '../../../protocol/frames.ts';
import type { BrokeredCall } from '../../../supervisor/children/run.ts';
import { createToolBroker, type ToolBroker } from '../../../supervisor/mcp/tool-broker.ts';
import { systemClock } from '../../../supervisor/reactor/clock.ts';
import type { ToolBody } from '../../fixtures/mcp/fixture-server.ts';
import { mcpServers } from '../../helpers/mcp-servers.ts';
import { recordingLog } from '../../helpers/null-log.ts';
import { httpServer, type PeerHarness, recordingMetrics } from '../../helpers/peer-harness.ts';

const { fixture, harness } = mcpServers();
const TRACE = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
const text = (value: string) => ({ content: [{ type: 'text' as const, text: value }] });

function broker(h: PeerHarness, more: Partial<Parameters<typeof createToolBroker>[0]> = {}) {
  const { log, lines } = recordingLog();
  const { metrics, values } = recordingMetrics();
  const made: ToolBroker = createToolBroker({
    peers: h.peers,
    log,
    metrics,
    clock: systemClock,
    instance: 'sup-1',
    logContent: false,
    ...more,
  });
  return { ...made, lines, values };
}

function descriptor(tool: string, server = 'src'): ToolDescriptor {
  return { name: `${server}__${tool}`, server, tool, description: '', input_schema: {} };
}

function callOf(tool: string, more: Partial<BrokeredCall> = {}): BrokeredCall {
  return {
    runId: 'RUN',
    agentPath: '0.1',
    traceparent: TRACE,
    descriptor: descriptor(tool),
    arguments: {},
    timeoutMs: 10_000,
    signal: new AbortController().signal,
    progress: () => undefined,
    ...more,
  };
}

async function connected(tools: Record<string, ToolBody>) {
  const server = await fixture({ tools });
  const h = harness([httpServer('src', server.url)]);
  await h.peers.start();
  return { server, h };
}

describe('the tool broker', () => {
  it('gives every call of a run its own idempotency key, and a replay of the run the same ones', async () => {
    const keys: unknown[] = [];
    const { h } = await connected({
      file: ({ meta }) => {
        keys.push(meta['agent/idempotency_key']);
        return text('filed');
      },
    });
    const runs = broker(h);
    const calls = [{ a: 1, b: 2 }, { b: 2, a: 1 }, { a: 1 }, { a: '1' }];
    const replay = async (): Promise<void> => {
      for (const args of calls) await runs.call(callOf('file', { arguments: args }));
    };
    await replay();
    const first = keys.splice(0);
    expect(new Set(first).size).toBe(4);
    for (const key of first) expect(key).toMatch(/^RUN:[0-9a-f]{16}:\d+$/);
    // Equal arguments in another order are the same call, made a second time.
    expect(String(first[1])).toBe(`${String(first[0]).slice(0, -2)}:1`);
    runs.forget('RUN');
    await replay();
    expect(keys).toEqual(first);
  });

  it('presents the same key again when a call was not answered', async () => {
    const keys: unknown[] = [];
    const { server, h } = await connected({
      file: ({ meta }) => {
        keys.push(meta['agent/idempotency_key']);
        if (keys.length > 1) return text('filed');
        server.resetSockets();
        return new Promise(() => undefined);
      },
    });
    const runs = broker(h, { reconnectWaitMs: 30_000 });
    const broken = await runs.call(callOf('file'));
    expect(broken).toMatchObject({ is_error: true });
    expect(broken.text).toContain('repeating file with the same arguments is recognised');
    expect(await runs.call(callOf('file'))).toEqual({ text: 'filed', is_error: false });
    expect(keys[1]).toBe(keys[0]);
  });

  it('passes progress on, and lets a call that reports it outlive its timeout', async () => {
    const { h } = await connected({
      slow: async ({ progress }) => {
        for (let step = 1; step <= 15; step++) {
          await new Promise((resolve) => setTimeout(resolve, 100));
          await progress(step, 15);
        }
        return text('done');
      },
    });
    const notes: string[] = [];
    const outcome = await broker(h).call(
      callOf('slow', { timeoutMs: 1_000, progress: (note) => notes.push(note) }),
    );
    expect(outcome).toEqual({ text: 'done', is_error: false });
    expect(notes[0]).toBe('1/15');
    expect(notes.length).toBeGreaterThan(10);
  });

  it('turns a timeout into a result the model can act on', async () => {
    const { h } = await connected({ hang: () => new Promise(() => undefined) });
    const { call, values } = broker(h);
    const outcome = await call(callOf('hang', { timeoutMs: 200 }));
    expect(outcome.is_error).toBe(true);
    expect(outcome.text).toMatch(/neither answer nor progress in 200 ms.*may still have taken effect/);
    expect(values.get('agent_tool_calls_total{server=src,tool=hang,ok=false}')).toBe(1);
    expect(values.get('agent_tool_call_duration_ms{server=src,tool=hang}')).toBe(1);
  });

  it('cancels the call at the server when its child is gone', async () => {
    let cancelled: () => void = () => undefined;
    const heard = new Promise<void>((resolve) => {
      cancelled = resolve;
    });
    let begun: () => void = () => undefined;
    const started = new Promise<void>((resolve) => {
      begun = resolve;
    });
    const { h } = await connected({
      hang: ({ signal }) => {
        begun();
        return new Promise(() => signal.addEventListener('abort', () => cancelled()));
      },
    });
    const controller = new AbortController();
    const outcome = broker(h).call(callOf('hang', { signal: controller.signal }));
    await started;
    controller.abort();
    expect(await outcome).toEqual({ text: 'The call was cancelled.', is_error: true });
    await heard;
  });

  it('waits a short while for a server that is reconnecting', async () => {
    const { server, h } = await connected({ quick: () => text('here') });
    await server.stop();
    await h.until('the loss', () => h.messages.some(({ type }) => type === 'peer.down'));
    const given = await broker(h, { reconnectWaitMs: 50 }).call(callOf('quick'));
    expect(given).toMatchObject({ is_error: true });
    expect(given.text).toContain('Tool server src is not connected at the moment; the call was not made.');
    const patient = broker(h, { reconnectWaitMs: 60_000 }).call(callOf('quick', { timeoutMs: 60_000 }));
    await server.listen();
    expect(await patient).toEqual({ text: 'here', is_error: false });
  });

  it('knows only the servers and tools there are', async () => {
    const { server, h } = await connected({ quick: () => text('here') });
    const { call } = broker(h);
    const nowhere = await call(callOf('quick', { descriptor: descriptor('quick', 'elsewhere') }));
    expect(nowhere).toEqual({ text: 'There is no tool server named elsewhere.', is_error: true });
    const gone = await call(callOf('other'));
    expect(gone.text).toContain('does not offer other');
    expect(server.count('call other')).toBe(0);
  });

  it('bounds the text and the structured part of a result', async () => {
    const { h } = await connected({
      big: () => ({ content: [{ type: 'text', text: 'é'.repeat(1_000) }] }),
      deep: () => ({ content: [], structuredContent: { list: 'y'.repeat(2_000) } }),
      fits: () => ({ content: [], structuredContent: { a: 1 } }),
    });
    const { call } = broker(h, { maxResultBytes: 1_001 });
    const big = await call(callOf('big'));
    expect(big.text).toBe(
      `${'é'.repeat(500)}\n[cut: the result has 2000 bytes, of which the first 1000 are shown]`,
    );
    const deep = await call(callOf('deep'));
    expect(deep.structured).toBeUndefined();
    expect(deep.text).toContain('[left out: the structured part of the result exceeds 1001 bytes]');
    expect(await call(callOf('fits'))).toEqual({ text: '{"a":1}', is_error: false, structured: { a: 1 } });
  });

  it('logs arguments and results as hash and length, unless content is wanted', async () => {
    const { h } = await connected({ echo: ({ args }) => text(`answer ${String(args.say)}`) });
    const quiet = broker(h);
    await quiet.call(callOf('echo', { arguments: { say: 'sesame' } }));
    expect(quiet.lines.map(({ event }) => event)).toEqual(['tool.call', 'tool.result']);
    expect(quiet.lines[1]?.fields).toMatchObject({
      server: 'src',
      tool: 'echo',
      ok: true,
      trace_id: '0af7651916cd43dd8448eb211c80319c',
      result: { bytes: 13 },
    });
    expect(quiet.lines[1]?.identity).toMatchObject({ runId: 'RUN', agentPath: '0.1' });
    expect(JSON.stringify(quiet.lines)).not.toContain('sesame');
    const open = broker(h, { logContent: true });
    await open.call(callOf('echo', { arguments: { say: 'sesame' } }));
    expect(open.lines[0]?.fields).toMatchObject({ arguments: '{"say":"sesame"}' });
    expect(open.lines[1]?.fields).toMatchObject({ result: 'answer sesame' });
  });
});
