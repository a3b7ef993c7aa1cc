import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Line } from '../fleet/agentd-process.ts';
import { Fleet } from '../fleet/fleet.ts';
import { print, quantile } from './report.ts';

const SINGLE = 60;
const BURST = 120;
/** Between two single reactions, ms: the pool has replaced the child that the last one took. */
const REFILL_MS = 400;

/** One supervisor, no claim, debounce 0: what the supervisor itself adds to a reaction. */
export async function run(): Promise<void> {
  await measure('warm', ['--warm-children', '2']);
  await measure('cold', ['--warm-children', '0']);
}

async function measure(kind: 'warm' | 'cold', flags: readonly string[]): Promise<void> {
  const state = await mkdtemp(join(tmpdir(), 'agentd-bench-'));
  const documents = join(state, 'inbox');
  await mkdir(documents);
  const config = join(state, 'agentd.yaml');
  await writeFile(
    config,
    `agent: { instruction: bench }
intelligence: { endpoints: ["script:final"] }
mcp: { servers: [ { name: inbox, endpoint: "\${INBOX_URL}" } ] }
routes: [ { match: "inbox:///**", debounce: 0, max_inflight: 8 } ]
`,
  );
  const fleet = await Fleet.start({ documents, state, common: ['--config', config], supervisors: [flags] });
  try {
    const lags: number[] = [];
    let settled = 0;
    let wake = (): void => undefined;
    fleet.onLine((_, line: Line) => {
      if (line.event === 'trigger.fired') lags.push(Number(line.lag_ms));
      if (line.event === 'subagent.exit') {
        settled++;
        wake();
      }
    });
    const until = (count: number): Promise<void> =>
      new Promise((resolve) => {
        wake = () => {
          if (settled >= count) resolve();
        };
        wake();
      });
    await fleet.startSupervisors();
    for (let index = 0; index < SINGLE; index++) {
      await writeFile(join(documents, `single-${index}.txt`), 'x');
      await until(index + 1);
      if (kind === 'warm') await pause(REFILL_MS);
    }
    print({
      what: `notification → child loop start, ${kind}, p50`,
      value: quantile(lags, 0.5),
      unit: 'ms',
      ...(kind === 'warm' ? { target: '≤ 3' } : {}),
    });
    print({
      what: `notification → child loop start, ${kind}, p99`,
      value: quantile(lags, 0.99),
      unit: 'ms',
      ...(kind === 'warm' ? { target: '≤ 20' } : {}),
    });
    if (kind === 'cold') return;
    print({
      what: '  a round trip through a pipe, p50, for comparison',
      value: await pipeRoundTrip(),
      unit: 'ms',
    });
    const start = performance.now();
    await Promise.all(
      Array.from({ length: BURST }, (_, index) => writeFile(join(documents, `burst-${index}.txt`), 'x')),
    );
    await until(SINGLE + BURST);
    print({
      what: 'reactions sustained, one supervisor',
      value: BURST / ((performance.now() - start) / 1000),
      unit: '/s',
    });
  } finally {
    await fleet.stop();
    await rm(state, { recursive: true, force: true });
  }
}

/** What this machine, as busy as it is, takes to wake another process and be woken by it. Median, ms. */
async function pipeRoundTrip(): Promise<number> {
  const echo = spawn('cat', { stdio: ['pipe', 'pipe', 'inherit'] });
  const times: number[] = [];
  for (let index = 0; index < 200; index++) {
    const start = performance.now();
    echo.stdin.write('x\n');
    await once(echo.stdout, 'data');
    times.push(performance.now() - start);
    await pause(5);
  }
  echo.stdin.end();
  await once(echo, 'exit');
  return quantile(times, 0.5);
}
