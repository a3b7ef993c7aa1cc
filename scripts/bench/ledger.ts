import { closeSync, fdatasyncSync, openSync, writeSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { DEFAULT_POLICY } from '../../supervisor/coordination/ledger.ts';
import { openLedger } from '../../supervisor/coordination/open-ledger.ts';
import type { ClaimTarget } from '../../supervisor/gates/lease-keeper.ts';
import { PeerSet } from '../../supervisor/mcp/peer-set.ts';
import { WorkClient } from '../../supervisor/mcp/work-client.ts';
import { systemClock } from '../../supervisor/reactor/clock.ts';
import { createMetrics } from '../../supervisor/telemetry/metrics-exporter.ts';
import { newTraceparent } from '../../supervisor/telemetry/trace.ts';
import { nullLog } from '../../test/helpers/null-log.ts';
import { AgentdProcess } from '../fleet/agentd-process.ts';
import { claimPairs } from './contention.ts';
import { print, quantile } from './report.ts';

const PAIRS = 6_000;
/** What a claim writes to the log of the database at least: two pages with their headers. */
const COMMIT_BYTES = 2 * (4_096 + 24);
const DISK_SAMPLES = 300;

export async function run(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'agentd-bench-'));
  try {
    const ledger = await openLedger(join(folder, 'ledger.sqlite'), folder, DEFAULT_POLICY);
    for (const contenders of [1, 4, 16, 64]) {
      const target = contenders === 1 ? '≥ 3,000' : contenders === 64 ? '≥ 15,000' : null;
      await claimPairs(ledger, {
        adapter: 'SQLite',
        contenders,
        pairs: PAIRS,
        ...(target === null ? {} : { target }),
      });
    }
    await ledger.close();
    await syncs(folder, 'back to back', 0);
    await overMcp(folder);
    await syncs(folder, 'every 4 ms, as the claims above', 4);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** What this disk alone takes for a commit: no durable claim can be faster. */
async function syncs(folder: string, pace: string, gapMs: number): Promise<void> {
  const file = openSync(join(folder, 'syncs'), 'w');
  const bytes = Buffer.alloc(COMMIT_BYTES, 1);
  const times: number[] = [];
  try {
    writeSync(file, Buffer.alloc(COMMIT_BYTES * DISK_SAMPLES), 0, null, 0);
    fdatasyncSync(file);
    for (let index = 0; index < DISK_SAMPLES; index++) {
      const start = performance.now();
      writeSync(file, bytes, 0, COMMIT_BYTES, index * COMMIT_BYTES);
      fdatasyncSync(file);
      times.push(performance.now() - start);
      if (gapMs > 0) await pause(gapMs);
    }
  } finally {
    closeSync(file);
  }
  print({
    what: `  for comparison, write and fdatasync ${pace}, p50`,
    value: quantile(times, 0.5),
    unit: 'ms',
  });
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
  const peers = new PeerSet({
    servers: [
      {
        name: 'coord',
        transport: { kind: 'http', url: String(ready.url), headers: {} },
        tags: [],
        required: true,
        timeoutMs: 10_000,
      },
    ],
    clock: systemClock,
    log: nullLog,
    metrics: createMetrics(),
    emit: () => undefined,
    instance: 'bench',
    version: '0',
    tlsCa: null,
  });
  await peers.start();
  const work = new WorkClient({ peers, instance: 'bench', shard: null });
  const target = (item: string): ClaimTarget => ({
    server: 'coord',
    style: 'tool',
    item,
    claimKey: item,
    traceparent: newTraceparent(),
    ttlMs: 30_000,
    renewFraction: 0.33,
  });
  const pair = async (item: string): Promise<number> => {
    const start = performance.now();
    const claim = await work.claim(target(item), 10_000);
    const took = performance.now() - start;
    if (claim.kind !== 'granted') throw new Error(`${item} was not granted`);
    await work.ack(target(item), claim.leaseId, 'done', 10_000);
    return took;
  };
  const trips: number[] = [];
  const claims: number[] = [];
  for (let index = 0; index < 600; index++) {
    const start = performance.now();
    await peers.get('coord')?.callTool('work.stats', {}, { timeoutMs: 10_000 });
    trips.push(performance.now() - start);
    claims.push(await pair(`single-${index}`));
  }
  print({ what: 'work.claim over MCP on loopback, p50', value: quantile(claims, 0.5), unit: 'ms' });
  print({
    what: '  above a call that writes nothing, p50',
    value: quantile(claims, 0.5) - quantile(trips, 0.5),
    unit: 'ms',
    target: '≤ 0.5',
  });
  const start = performance.now();
  let next = 0;
  await Promise.all(
    Array.from({ length: 16 }, async () => {
      while (next < 1_500) await pair(`parallel-${next++}`);
    }),
  );
  print({
    what: 'claim+ack pairs over MCP, 16 at a time',
    value: 1_500 / ((performance.now() - start) / 1000),
    unit: '/s',
  });
  await peers.close(1_000);
  server.kill('SIGTERM');
  await server.exited;
}
