/**
 * A process that does nothing but supervise: what the tests of reaping kill, or run as PID 1.
 * Arguments: fixture, runs, instruction. Prints one JSON line a report on stdout.
 */
import { execFileSync } from 'node:child_process';
import { closeSync, openSync, readdirSync } from 'node:fs';
import { childrenOfSelf, readStat } from '../../../supervisor/children/proc.ts';
import { eventually } from '../../helpers/eventually.ts';
import { fixture, rig, spec } from './harness.ts';

const [name = 'obliging', count = '1', instruction = 'hello'] = process.argv.slice(2);
const say = (report: object): boolean => process.stdout.write(`${JSON.stringify(report)}\n`);
const descriptors = (): number => readdirSync('/proc/self/fd').length;
const zombies = (): number => childrenOfSelf().filter((pid) => readStat(pid)?.state === 'Z').length;

const command = name.startsWith('/') ? ([name] as const) : fixture(name);
const { supervisor, run, begin, lines } = rig(command);
await supervisor.start();

if (count === 'exhaust') {
  // With no descriptor left at all, with a few left, and with enough again.
  const first = await run(spec({ instruction }));
  const opened: number[] = [];
  try {
    for (;;) opened.push(openSync('/dev/null', 'r'));
  } catch {
    // Full.
  }
  const none = await run(spec({ instruction }));
  for (const descriptor of opened.splice(0, 4)) closeSync(descriptor);
  const few = await run(spec({ instruction }));
  for (const descriptor of opened) closeSync(descriptor);
  // Two starts have failed in a row: the next one is a probe, which has to come up first.
  await eventually('a probe to come up', () => supervisor.canStart, 60_000);
  const enough = await run(spec({ instruction }));
  say({ causes: [first, none, few, enough].map((outcome) => outcome.cause ?? outcome.status) });
  await supervisor.drain(5_000);
  process.exit(0);
} else if (count === 'no-processes') {
  const first = await run(spec({ instruction }));
  const lower = 'prlimit';
  execFileSync(lower, ['--pid', String(process.pid), '--nproc=1:']);
  const refused = await run(spec({ instruction }));
  say({ first: first.status, cause: refused.cause, message: refused.error?.message });
  await supervisor.drain(5_000);
  process.exit(0);
} else if (count === 'hold') {
  const { pid } = await begin(spec({ instruction }));
  const report = setInterval(() => {
    const line = lines.find((one) => one.event === 'loop.start');
    if (line === undefined) return;
    clearInterval(report);
    say({ child: pid, ...line.fields });
  }, 10);
  setInterval(() => {}, 60_000);
} else {
  // A pool stops trying when nothing comes up; what is looked at here are the attempts.
  const startable = () => (name.startsWith('/') ? rig(command) : { run });
  // Past the first runs everything that is opened once is open.
  const lap = async (runs: number): Promise<void> => {
    for (let done = 0; done < runs; done += 10) {
      const length = Math.min(10, runs - done);
      await Promise.all(Array.from({ length }, () => startable().run(spec({ instruction }))));
    }
  };
  await lap(20);
  await settle();
  const before = descriptors();
  await lap(Number(count));
  await settle(before);
  const orphans = lines.filter((line) => line.event === 'subagent.orphan').length;
  say({
    pid: process.pid,
    children: childrenOfSelf().length,
    zombies: zombies(),
    descriptors: { before, after: descriptors() },
    orphans,
    active: supervisor.active,
  });
  await supervisor.drain(5_000);
  process.exit(0);
}

/**
 * Waits until the last orphans are dead and the usage sampler has let go of its descriptors, which it
 * does within ten seconds of the end of a process it has looked at.
 */
async function settle(few = Number.POSITIVE_INFINITY): Promise<void> {
  const unsettled = (): boolean => childrenOfSelf().length > 0 || descriptors() > few;
  for (let i = 0; i < 400 && (i < 10 || unsettled()); i += 1) {
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
