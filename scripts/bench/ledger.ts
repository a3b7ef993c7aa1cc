import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { DEFAULT_POLICY, type Ledger } from '../../supervisor/coordination/ledger.ts';
import { openLedger } from '../../supervisor/coordination/open-ledger.ts';
import { AgentdProcess } from '../fleet/agentd-process.ts';
import { print, quantile } from './report.ts';

const PAIRS = 6_000;

export async function run(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'agentd-bench-'));
  try {
    const ledger = await openLedger(join(folder, 'ledger.sqlite'), folder, DEFAULT_POLICY);
    for (const contenders of [1, 4, 16, 64]) await inProcess(ledger, contenders);
    await ledger.close();
    await overMcp(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function inProcess(ledger: Ledger, contenders: number): Promise<void> {
  let next = 0;
  const latencies: number[] = [];
  const start = performance.now();
  const worker = async (holder: string): Promise<void> => {
    while (next < PAIRS) {
      const key = `${contenders}:${next++}`;
      const sent = performance.now();
      const claim = await ledger.claim({ key, item: key, holder, ttlMs: 30_000 });
      latencies.push(performance.now() - sent);
      if (!claim.granted) throw new Error(`${key} was not granted`);
      await ledger.ack({ leaseId: claim.leaseId, holder, result: null });
    }
  };
  await Promise.all(Array.from({ length: contenders }, (_, index) => worker(`holder-${index}`)));
  const seconds = (performance.now() - start) / 1000;
  const target = contenders === 1 ? '≥ 3,000' : contenders === 64 ? '≥ 15,000' : undefined;
  print({
    what: `claim+ack pairs, SQLite, in process, ${contenders} contenders`,
    value: PAIRS / seconds,
    unit: '/s',
    ...(target === undefined ? {} : { target }),
  });
  print({ what: `  claim latency, p99`, value: quantile(latencies, 0.99), unit: 'ms' });
}

async function overMcp(folder: string): Promise<void> {
  const server = new AgentdProcess('coordinate', [
    'coordinate',
    '--listen',
    'http://127.0.0.1:0',
    '--db',
    join(folder, 'mcp.sqlite'),
    '--log-format',
    'json',
  ]);
  const ready = await server.line('proc.ready', ({ event }) => event === 'proc.ready');
  const client = new Client({ name: 'bench', version: '1' });
  await client.connect(new StreamableHTTPClientTransport(new URL(String(ready.url))));
  const call = async (name: string, args: Record<string, unknown>): Promise<Record<string, unknown>> => {
    const result = await client.callTool({ name, arguments: args, _meta: { 'agent/instance': 'bench' } });
    return result.structuredContent as Record<string, unknown>;
  };
  const trips: number[] = [];
  const claims: number[] = [];
  for (let index = 0; index < 600; index++) {
    let start = performance.now();
    await client.ping();
    trips.push(performance.now() - start);
    start = performance.now();
    const claim = await call('work.claim', { item: `mcp-${index}`, ttl_ms: 30_000 });
    claims.push(performance.now() - start);
    await call('work.ack', { lease_id: claim.lease_id });
  }
  print({ what: 'work.claim over MCP on loopback, p50', value: quantile(claims, 0.5), unit: 'ms' });
  print({
    what: '  above an MCP ping on the same connection, p50',
    value: quantile(claims, 0.5) - quantile(trips, 0.5),
    unit: 'ms',
    target: '≤ 0.5',
  });
  const start = performance.now();
  let next = 0;
  await Promise.all(
    Array.from({ length: 16 }, async () => {
      while (next < 1_000) {
        const claim = await call('work.claim', { item: `parallel-${next++}`, ttl_ms: 30_000 });
        await call('work.ack', { lease_id: claim.lease_id });
      }
    }),
  );
  print({
    what: 'claim+ack pairs over MCP, 16 at a time',
    value: 1_000 / ((performance.now() - start) / 1000),
    unit: '/s',
  });
  await client.close();
  server.kill('SIGTERM');
  await server.exited;
}
