import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import type { Line } from '../fleet/agentd-process.ts';
import { withSupervisor } from './one-supervisor.ts';
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
  await withSupervisor({ flags }, async ({ fleet, drop }) => {
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
      await drop(`single-${index}.txt`);
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
    await Promise.all(Array.from({ length: BURST }, (_, index) => drop(`burst-${index}.txt`)));
    await until(SINGLE + BURST);
    print({
      what: 'reactions sustained, one supervisor',
      value: BURST / ((performance.now() - start) / 1000),
      unit: '/s',
    });
  });
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
