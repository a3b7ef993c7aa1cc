import { describe, expect, it } from 'vitest';
import type { ClaimTarget } from '../../../supervisor/gates/lease-keeper.ts';
import { createToolBroker } from '../../../supervisor/mcp/tool-broker.ts';
import { WorkClient } from '../../../supervisor/mcp/work-client.ts';
import { systemClock } from '../../../supervisor/reactor/clock.ts';
import type { ToolBody } from '../../fixtures/mcp/fixture-server.ts';
import { mcpServers } from '../../helpers/mcp-servers.ts';
import { nullLog } from '../../helpers/null-log.ts';
import { httpServer, recordingMetrics } from '../../helpers/peer-harness.ts';

const { fixture, harness } = mcpServers();
const TRACE = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
const TARGET: ClaimTarget = {
  server: 'ledger',
  style: 'tool',
  item: 'inbox://docs/a b.txt',
  claimKey: '0123456789ABCDEFGHJKMNPQRS',
  traceparent: TRACE,
  ttlMs: 30_000,
  renewFraction: 0.33,
};

const answer = (value: Record<string, unknown>) => ({
  content: [{ type: 'text' as const, text: JSON.stringify(value) }],
  structuredContent: value,
});

/** A ledger that answers with what it is told, and keeps what it was asked. */
async function ledger(answers: Record<string, () => ReturnType<ToolBody>>) {
  const asked: { tool: string; args: unknown; meta: unknown }[] = [];
  const tools: Record<string, ToolBody> = {};
  for (const [tool, body] of Object.entries(answers)) {
    tools[tool] = ({ args, meta }) => {
      asked.push({ tool, args, meta });
      return body();
    };
  }
  const server = await fixture({ tools });
  const h = harness([httpServer('ledger', server.url)]);
  await h.peers.start();
  const client = (shard: string | null) => new WorkClient({ peers: h.peers, instance: 'sup-1', shard });
  return { server, peers: h.peers, client, asked };
}

describe('contract section 9: what travels with a claim', () => {
  it('is exactly the documented arguments and _meta on every work call', async () => {
    const { client, asked } = await ledger({
      'work.claim': () => answer({ granted: true, lease_id: 'L1', expires_in_ms: 29_000, fencing_token: 7 }),
      'work.renew': () => answer({ ok: true, expires_in_ms: 30_000 }),
      'work.ack': () => answer({ ok: true }),
      'work.release': () => answer({ ok: true }),
      'work.claim_next': () => answer({ leases: [] }),
    });
    const sharded = client('1/3');
    expect(await sharded.claim(TARGET, 5_000)).toEqual({
      kind: 'granted',
      leaseId: 'L1',
      expiresInMs: 29_000,
      fencingToken: 7,
    });
    expect(await sharded.renew(TARGET, 'L1', 5_000)).toEqual({ kind: 'ok', expiresInMs: 30_000 });
    expect(await sharded.ack(TARGET, 'L1', 'the result', 5_000)).toEqual({ kind: 'ok' });
    expect(await client(null).release(TARGET, 'L1', 'drain', 5_000)).toEqual({ kind: 'ok' });
    const next = { ttlMs: 1_000, kinds: ['mail'], max: 2, traceparent: TRACE };
    expect(await client(null).claimNext('ledger', next, 5_000)).toEqual({ kind: 'granted', leases: [] });

    const meta = { 'agent/claim_key': TARGET.claimKey, 'agent/instance': 'sup-1', traceparent: TRACE };
    const onShard = { ...meta, 'agent/shard': '1/3' };
    expect(asked).toEqual([
      { tool: 'work.claim', args: { item: TARGET.item, ttl_ms: 30_000 }, meta: onShard },
      { tool: 'work.renew', args: { lease_id: 'L1', ttl_ms: 30_000 }, meta: onShard },
      { tool: 'work.ack', args: { lease_id: 'L1', result: 'the result' }, meta: onShard },
      { tool: 'work.release', args: { lease_id: 'L1', reason: 'drain' }, meta },
      {
        tool: 'work.claim_next',
        args: { ttl_ms: 1_000, kinds: ['mail'], max: 2 },
        meta: { 'agent/instance': 'sup-1', traceparent: TRACE },
      },
    ]);
  });

  it('is run id, instance, idempotency key and trace on every downstream call', async () => {
    const { peers, asked } = await ledger({ file: () => answer({ ok: true }) });
    const { metrics } = recordingMetrics();
    const broker = createToolBroker({
      peers,
      log: nullLog,
      metrics,
      clock: systemClock,
      instance: 'sup-1',
      logContent: false,
    });
    await broker.call({
      runId: TARGET.claimKey,
      agentPath: '0',
      traceparent: TRACE,
      descriptor: { name: 'ledger__file', server: 'ledger', tool: 'file', description: '', input_schema: {} },
      arguments: { b: [1, { d: 2, c: null }], a: 'é' },
      timeoutMs: 5_000,
      signal: new AbortController().signal,
      progress: () => undefined,
    });
    expect(asked[0]?.meta).toEqual({
      'agent/run_id': TARGET.claimKey,
      'agent/instance': 'sup-1',
      // sha256 of `ledger\0file\0{"a":"é","b":[1,{"c":null,"d":2}]}`.
      'agent/idempotency_key': `${TARGET.claimKey}:d9717b0b24f47ff9:0`,
      // A span of the call's own, in the trace of the run.
      traceparent: expect.stringMatching(new RegExp(`^${TRACE.slice(0, 36)}[0-9a-f]{16}-01$`)),
      // The client's own, by the MCP specification.
      progressToken: expect.any(Number),
    });
  });
});

describe('an answer of a ledger', () => {
  it('that says no is a lost claim or a refused lease', async () => {
    const { client } = await ledger({
      'work.claim': () => answer({ granted: false, held_by: '<acked>' }),
      'work.renew': () => answer({ ok: false }),
      'work.ack': () => answer({ ok: false }),
      'work.release': () => answer({ ok: false }),
    });
    const work = client(null);
    expect(await work.claim(TARGET, 5_000)).toEqual({ kind: 'lost', heldBy: '<acked>' });
    expect(await work.renew(TARGET, 'L1', 5_000)).toEqual({ kind: 'refused' });
    expect(await work.ack(TARGET, 'L1', '', 5_000)).toEqual({ kind: 'refused' });
    expect(await work.release(TARGET, 'L1', 'drain', 5_000)).toEqual({ kind: 'refused' });
  });

  it('that is an error is neither a grant nor a refusal (H07)', async () => {
    const error = (): ReturnType<ToolBody> => ({
      ...answer({ granted: true, lease_id: 'L1', expires_in_ms: 1, ok: true }),
      isError: true,
    });
    const { client } = await ledger({ 'work.claim': error, 'work.renew': error, 'work.ack': error });
    const work = client(null);
    expect((await work.claim(TARGET, 5_000)).kind).toBe('failed');
    expect((await work.renew(TARGET, 'L1', 5_000)).kind).toBe('failed');
    expect((await work.ack(TARGET, 'L1', '', 5_000)).kind).toBe('failed');
  });

  it('that does not have the shape of the contract is a failure', async () => {
    const shapes: Record<string, unknown>[] = [
      {},
      { granted: 'yes', lease_id: 'L1', expires_in_ms: 1 },
      { granted: true, lease_id: '', expires_in_ms: 1 },
      { granted: true, lease_id: 'L1', expires_in_ms: '30s' },
      { granted: false },
    ];
    const { client, asked } = await ledger({ 'work.claim': () => answer(shapes[asked.length - 1] ?? {}) });
    for (const _shape of shapes) {
      const outcome = await client(null).claim(TARGET, 5_000);
      expect(outcome).toEqual({
        kind: 'failed',
        error: 'work.claim: the answer does not have the shape of the contract',
      });
    }
  });

  it('may come as text alone', async () => {
    const body = { granted: true, lease_id: 'L9', expires_in_ms: 10 };
    const { client } = await ledger({
      'work.claim': () => ({ content: [{ type: 'text', text: JSON.stringify(body) }] }),
      'work.renew': () => ({ content: [{ type: 'text', text: 'fine, go on' }] }),
    });
    expect(await client(null).claim(TARGET, 5_000)).toMatchObject({ kind: 'granted', leaseId: 'L9' });
    expect((await client(null).renew(TARGET, 'L9', 5_000)).kind).toBe('failed');
  });

  it('that does not come in time, or cannot come, is a failure', async () => {
    const { server, client } = await ledger({ 'work.claim': () => new Promise(() => undefined) });
    const late = await client(null).claim(TARGET, 200);
    expect(late).toMatchObject({ kind: 'failed', error: expect.stringContaining('in 200 ms') });
    await server.stop();
    expect((await client(null).claim(TARGET, 5_000)).kind).toBe('failed');
    const nobody = await client(null).claim({ ...TARGET, server: 'nobody' }, 5_000);
    expect(nobody).toEqual({ kind: 'failed', error: 'work.claim: no MCP server is named nobody' });
  });
});
