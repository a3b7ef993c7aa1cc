import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { EventRing } from '../../supervisor/telemetry/event-ring.ts';
import { createLog } from '../../supervisor/telemetry/logger.ts';
import { createMetrics } from '../../supervisor/telemetry/metrics-exporter.ts';
import { withSupervisor } from './one-supervisor.ts';
import { print, quantile } from './report.ts';

const LINES = 200_000;
const CONNECTIONS = 200;
const REACTIONS = 40;

export async function run(): Promise<void> {
  await scrape();
  await lines();
  ring();
  await managed();
}

async function scrape(): Promise<void> {
  const metrics = createMetrics();
  for (let server = 0; server < 16; server++) {
    for (let tool = 0; tool < 64; tool++) {
      const labels = { server: `server-${server}`, tool: `tool-${tool}` };
      metrics.add('agent_tool_calls_total', { ...labels, ok: 'true' });
      metrics.observe('agent_tool_call_duration_ms', tool, labels);
    }
  }
  await metrics.render(); // loads the library
  const times: number[] = [];
  let size = 0;
  for (let index = 0; index < 20; index++) {
    const start = performance.now();
    size = (await metrics.render()).length;
    times.push(performance.now() - start);
  }
  print({
    what: `scrape, 16 servers and 64 tools (${Math.round(size / 1024)} KB), p50`,
    value: quantile(times, 0.5),
    unit: 'ms',
  });
}

/** Into a pipe whose reader takes all it can. */
async function lines(): Promise<void> {
  const reader = spawn('cat', [], { stdio: ['pipe', 'ignore', 'ignore'] });
  let dropped = 0;
  const log = createLog({
    level: 'info',
    format: 'json',
    identity: { runId: 'bench', agentId: 'sup', agentPath: '0', comp: 'supervisor', pid: process.pid },
    destination: reader.stdin,
    onDropped: (count) => {
      dropped += count;
    },
  });
  const start = performance.now();
  for (let index = 0; index < LINES; index++) {
    log.info('tool.result', { server: 'inbox', tool: 'read', ok: true, dur_ms: 12 });
    // As in the product, work comes in turns of the event loop.
    if (index % 200 === 199) await new Promise(setImmediate);
  }
  await log.flush(5_000);
  print({ what: 'log lines into a pipe', value: LINES / ((performance.now() - start) / 1000), unit: '/s' });
  print({ what: '  of those dropped', value: (dropped / LINES) * 100, unit: '%' });
  reader.stdin.end();
  await once(reader, 'exit');
}

function ring(): void {
  const events = new EventRing(1024);
  const line = {
    ts: new Date().toISOString(),
    level: 'info' as const,
    event: 'tool.result' as const,
    run_id: 'bench',
    agent_id: 'sup',
    agent_path: '0',
    comp: 'supervisor' as const,
    pid: 1,
  };
  const start = performance.now();
  for (let index = 0; index < LINES; index++) events.append(line);
  print({ what: 'event ring, one line', value: ((performance.now() - start) * 1e6) / LINES, unit: 'ns' });
}

/** Reactions while operators look on. */
async function managed(): Promise<void> {
  await withSupervisor({ flags: ['--serve-mcp', 'http://127.0.0.1:0'] }, async ({ fleet, drop }) => {
    const clients: Client[] = [];
    try {
      const lags: number[] = [];
      let settled = (): void => undefined;
      fleet.onLine((_, line) => {
        if (line.event === 'trigger.fired') lags.push(Number(line.lag_ms));
        if (line.event === 'subagent.exit') settled();
      });
      await fleet.startSupervisor(0);
      for (let index = 0; index < CONNECTIONS; index++) {
        const client = new Client({ name: 'bench', version: '1' });
        await client.connect(new StreamableHTTPClientTransport(new URL(fleet.managementUrls[0] ?? '')));
        await client.subscribeResource({ uri: 'agent://status' });
        clients.push(client);
      }
      for (let index = 0; index < REACTIONS; index++) {
        const done = new Promise<void>((resolve) => {
          settled = resolve;
        });
        await drop(`${index}.txt`);
        await done;
      }
      const what = `notification → child loop start, ${CONNECTIONS} management connections`;
      print({ what: `${what}, p50`, value: quantile(lags, 0.5), unit: 'ms' });
      print({ what: `${what}, p99`, value: quantile(lags, 0.99), unit: 'ms' });
    } finally {
      await Promise.allSettled(clients.map((client) => client.close()));
    }
  });
}
