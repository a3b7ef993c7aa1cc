import { rssMb, withSupervisor } from './one-supervisor.ts';
import { print } from './report.ts';

const DEFAULT_RUNS = 500;
/** Files dropped before the ones before them are done: the queue stays short. */
const AHEAD = 16;
/** The same documents change again and again: what is watched must not grow with the runs. */
const DOCUMENTS = 64;

/**
 * What a supervisor holds after many runs.
 *
 * @param argument how many; default 500
 */
export async function run(argument?: string): Promise<void> {
  const runs = argument === undefined ? DEFAULT_RUNS : Number(argument);
  if (!Number.isInteger(runs) || runs < 2) throw new Error(`memory: ${argument} is no number of runs`);
  await withSupervisor({ flags: ['--warm-children', '2'] }, async ({ fleet, drop }) => {
    let settled = 0;
    let wake = (): void => undefined;
    fleet.onLine((_, line) => {
      if (line.event !== 'subagent.exit') return;
      settled++;
      wake();
    });
    const until = (count: number): Promise<void> =>
      new Promise((resolve) => {
        wake = () => {
          if (settled >= count) resolve();
        };
        wake();
      });
    const { pid } = await fleet.startSupervisor(0);
    const half = Math.floor(runs / 2);
    for (let index = 0; index < runs; index++) {
      if (index === half) {
        await until(half);
        print({ what: `RSS after ${half} runs`, value: await rssMb(pid), unit: 'MB' });
      }
      await until(index - AHEAD);
      await drop(`memory-${index % DOCUMENTS}.txt`, String(index));
    }
    await until(runs);
    print({ what: `RSS after ${runs} runs`, value: await rssMb(pid), unit: 'MB' });
  });
}
