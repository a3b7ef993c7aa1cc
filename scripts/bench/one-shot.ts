import { spawnSync } from 'node:child_process';
import { AGENTD } from '../fleet/agentd-process.ts';
import { print, quantile } from './report.ts';

const RUNS = 15;

export async function run(): Promise<void> {
  const time = (args: readonly string[]): number[] =>
    Array.from({ length: RUNS }, () => {
      const start = performance.now();
      const { status } = spawnSync(process.execPath, args, { stdio: 'ignore' });
      if (status !== 0) throw new Error(`${args.join(' ')} ended with ${status}`);
      return performance.now() - start;
    });
  const node = time(['-e', '0']);
  const version = time([AGENTD, '--version']);
  const oneShot = time([AGENTD, 'run', 'hello', '--intelligence', 'script:final']);
  print({ what: 'node -e 0, for comparison, median', value: quantile(node, 0.5), unit: 'ms' });
  print({ what: 'agentd --version, median', value: quantile(version, 0.5), unit: 'ms', target: '≤ 120' });
  print({
    what: 'one-shot run, script:final, median',
    value: quantile(oneShot, 0.5),
    unit: 'ms',
    target: '≤ 200',
  });
  print({
    what: 'one-shot run, in starts of node',
    value: quantile(oneShot, 0.5) / quantile(node, 0.5),
    unit: '×',
  });
}
