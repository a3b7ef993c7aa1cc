import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { AgentdError } from '../../../protocol/errors.ts';
import type { ToolBody } from '../../fixtures/mcp/fixture-server.ts';
import { eventually } from '../../helpers/eventually.ts';
import { mcpServers } from '../../helpers/mcp-servers.ts';
import { httpServer } from '../../helpers/peer-harness.ts';

const { fixture, harness } = mcpServers();
const plain: Server[] = [];

const CALL = { timeoutMs: 20_000 };
const text = (value: string) => ({ content: [{ type: 'text' as const, text: value }] });
const hang: ToolBody = ({ signal }) =>
  new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('cancelled'))));

/** A server that is no MCP server. */
async function listen(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  plain.push(server);
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
}

afterEach(async () => {
  for (const server of plain.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

describe('calls over Streamable HTTP', () => {
  it('time out when the server hangs, and tell it so', async () => {
    let cancelled: () => void = () => undefined;
    const heard = new Promise<void>((resolve) => {
      cancelled = resolve;
    });
    const server = await fixture({
      tools: { hang: ({ signal }) => new Promise(() => signal.addEventListener('abort', () => cancelled())) },
    });
    const h = harness([httpServer('src', server.url)]);
    await h.peers.start();
    const call = h.peers.get('src')?.callTool('hang', {}, { timeoutMs: 200 });
    await expect(call).rejects.toMatchObject({ code: 'MCP_TIMEOUT', kind: 'retry' });
    await heard;
    expect(h.peers.get('src')?.state).toBe('live');
  });

  it('outlive their timeout as long as they report progress', async () => {
    const server = await fixture({
      tools: {
        slow: async ({ progress }) => {
          for (let step = 1; step <= 20; step++) {
            await new Promise((resolve) => setTimeout(resolve, 100));
            await progress(step, 20);
          }
          return text('done');
        },
      },
    });
    const h = harness([httpServer('src', server.url)]);
    await h.peers.start();
    const notes: string[] = [];
    const started = performance.now();
    const answer = await h.peers
      .get('src')
      ?.callTool('slow', {}, { timeoutMs: 1_000, onProgress: (note) => notes.push(note) });
    expect(performance.now() - started).toBeGreaterThan(1_500);
    expect(answer?.text).toBe('done');
    expect(notes).toHaveLength(20);
    expect(notes.at(-1)).toBe('20/20');
  });

  it('are cancelled at the server when their caller gives up', async () => {
    let cancelled: () => void = () => undefined;
    const heard = new Promise<void>((resolve) => {
      cancelled = resolve;
    });
    let begun: () => void = () => undefined;
    const started = new Promise<void>((resolve) => {
      begun = resolve;
    });
    const server = await fixture({
      tools: {
        hang: ({ signal }) => {
          begun();
          return new Promise(() => signal.addEventListener('abort', () => cancelled()));
        },
      },
    });
    const h = harness([httpServer('src', server.url)]);
    await h.peers.start();
    const controller = new AbortController();
    const call = h.peers.get('src')?.callTool('hang', {}, { ...CALL, signal: controller.signal });
    await started;
    controller.abort();
    await expect(call).rejects.toMatchObject({ code: 'MCP_CANCELLED' });
    await heard;
    expect(h.peers.get('src')?.state).toBe('live');
  });

  it('do not cancel anything when their signal fires after the answer', async () => {
    const server = await fixture({ tools: { quick: () => text('here') } });
    const h = harness([httpServer('src', server.url)]);
    await h.peers.start();
    const controller = new AbortController();
    const peer = h.peers.get('src');
    const answer = await peer?.callTool('quick', {}, { ...CALL, signal: controller.signal });
    controller.abort();
    expect(answer?.text).toBe('here');
    expect((await peer?.callTool('quick', {}, CALL))?.text).toBe('here');
  });

  it('fail at once when the connection is reset under them', async () => {
    const server = await fixture({
      tools: {
        reset: () => {
          server.resetSockets();
          return new Promise(() => undefined);
        },
      },
    });
    const h = harness([httpServer('src', server.url)]);
    await h.peers.start();
    const started = performance.now();
    const call = h.peers.get('src')?.callTool('reset', {}, { timeoutMs: 60_000 });
    await expect(call).rejects.toMatchObject({ code: 'MCP_UNAVAILABLE' });
    expect(performance.now() - started).toBeLessThan(30_000);
  });

  it('fail at once when their answer ends without a result, and the connection goes on', async () => {
    const server = await fixture({
      tools: {
        cut: () => new Promise(() => undefined),
        quick: () => text('here'),
      },
    });
    const h = harness([httpServer('src', server.url)]);
    await h.peers.start();
    const peer = h.peers.get('src');
    const call = peer?.callTool('cut', {}, { timeoutMs: 60_000 }).catch((error: unknown) => error);
    await eventually('the answer to begin', () => server.cutAnswers() > 0);
    expect(await call).toMatchObject({
      code: 'MCP_UNAVAILABLE',
      message: 'tool cut on MCP server src failed: the answer ended before its result',
    });
    expect((await peer?.callTool('quick', {}, CALL))?.text).toBe('here');
    expect(h.messages.filter(({ type }) => type === 'peer.down')).toEqual([]);
  });

  it('tell a tool that reports an error from a server that does', async () => {
    const server = await fixture({
      tools: {
        sorry: () => ({ ...text('no such order'), isError: true }),
        broken: () => {
          throw new Error('the database is on fire');
        },
      },
    });
    const h = harness([httpServer('src', server.url)]);
    await h.peers.start();
    const peer = h.peers.get('src');
    expect(await peer?.callTool('sorry', {}, CALL)).toMatchObject({ isError: true, text: 'no such order' });
    await expect(peer?.callTool('broken', {}, CALL)).rejects.toMatchObject({
      code: 'MCP_PROTOCOL',
      message: 'tool broken on MCP server src was answered with error -32603: the database is on fire',
    });
  });

  it('work with a server that answers in plain JSON and offers no event stream', async () => {
    const server = await fixture({
      resources: { 'a://1': 'one' },
      tools: { quick: () => text('here') },
      jsonAnswers: true,
      stream: false,
    });
    const h = harness([httpServer('src', server.url)]);
    h.peers.watch('src', 'a://1');
    await h.peers.start();
    expect((await h.peers.get('src')?.callTool('quick', {}, CALL))?.text).toBe('here');
    // It cannot be heard, and that must not look like being ready.
    await h.until('the report', () => h.messages.some(({ type }) => type === 'subscriptions'));
    expect(h.messages.at(-1)).toMatchObject({ type: 'subscriptions', active: 0, complete: false });
    expect(h.updates).toEqual([]);
  });

  it('refuse an answer over the cap without losing the connection for others', async () => {
    const server = await fixture({
      tools: { big: ({ args }) => text('x'.repeat(Number(args.bytes))), quick: () => text('here') },
    });
    const h = harness([httpServer('src', server.url)], { timings: { maxMessageBytes: 100_000 } });
    await h.peers.start();
    const peer = h.peers.get('src');
    await expect(peer?.callTool('big', { bytes: 500_000 }, CALL)).rejects.toMatchObject({
      code: 'MCP_UNAVAILABLE',
    });
    expect((await peer?.callTool('big', { bytes: 90_000 }, CALL))?.text).toHaveLength(90_000);
    expect((await peer?.callTool('quick', {}, CALL))?.text).toBe('here');
  });

  it('leave no socket behind however many of them hang', async () => {
    const server = await fixture({ tools: { hang } });
    const h = harness([httpServer('src', server.url)]);
    await h.peers.start();
    const peer = h.peers.get('src');
    const calls = Array.from({ length: 50 }, () => peer?.callTool('hang', {}, { timeoutMs: 300 }));
    const outcomes = await Promise.allSettled(calls);
    expect(outcomes.every(({ status }) => status === 'rejected')).toBe(true);
    const again = await Promise.allSettled([peer?.callTool('hang', {}, { timeoutMs: 300 })]);
    expect(again[0]?.status).toBe('rejected');
    expect(peer?.state).toBe('live');
  });
});

describe('starting', () => {
  it('fails with exit 6 naming the required server, its address without credentials, and why', async () => {
    const closed = 'http://user:pass%20word@127.0.0.1:1/mcp?token=hush';
    const h = harness([httpServer('ledger', closed)], { startBudgetMs: 3_000 });
    const error = await h.peers.start().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(AgentdError);
    expect(error).toMatchObject({ code: 'MCP_UNAVAILABLE', exitCode: 6 });
    const message = error instanceof Error ? error.message : '';
    expect(message).toContain('cannot reach MCP server ledger at http://127.0.0.1:1/mcp: ');
    expect(message).toMatch(/ECONNREFUSED|bad port/);
    expect(JSON.stringify([message, h.lines])).not.toMatch(/hush|pass|user/);
    expect(h.values.get('agent_mcp_connect_failures_total{server=ledger}')).toBeGreaterThan(0);
  });

  it('goes on without an optional server, and picks it up later', async () => {
    const server = await fixture({ resources: { 'a://1': 'one' } });
    await server.stop();
    const h = harness([httpServer('src', server.url, { required: false })]);
    h.peers.watch('src', 'a://1');
    await h.peers.start();
    expect(h.peers.get('src')?.state).not.toBe('live');
    expect(h.peers.tools()).toEqual([]);
    await server.listen();
    await h.complete('src');
    expect(h.updates).toEqual(['reread a://1']);
  });

  it('does not wait for a server that refuses the credential', async () => {
    const server = await fixture({ authorization: 'Bearer right' });
    const wrong = { kind: 'http' as const, url: server.url, headers: { Authorization: 'Bearer wrong' } };
    const h = harness([httpServer('src', server.url, { transport: wrong })], { startBudgetMs: 120_000 });
    const error = await h.peers.start().catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'MCP_UNAVAILABLE', exitCode: 6 });
    expect(String(error)).toContain('refused with status 401');
    expect(String(error)).not.toContain('wrong');
  });

  it('gives up on a server that accepts the connection and says nothing', async () => {
    const url = await listen(() => undefined);
    const h = harness([httpServer('src', url)], { startBudgetMs: 300 });
    const started = performance.now();
    await expect(h.peers.start()).rejects.toMatchObject({ code: 'MCP_UNAVAILABLE', exitCode: 6 });
    expect(performance.now() - started).toBeLessThan(20_000);
    await h.peers.close(2_000);
  });

  it('is not fooled by something that is no MCP server', async () => {
    const url = await listen((_req, res) => {
      res.writeHead(200, { 'content-type': 'text/html' }).end('<h1>It works!</h1>');
    });
    const h = harness([httpServer('src', url)], { startBudgetMs: 500 });
    const error = await h.peers.start().catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'MCP_UNAVAILABLE', exitCode: 6 });
    expect(String(error)).toContain('text/html');
  });
});
