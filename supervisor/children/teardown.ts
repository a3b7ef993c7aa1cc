import type { Log } from '../telemetry/log.ts';
import type { Child } from './child.ts';
import { planDrain } from './drain-plan.ts';
import type { LadderTimings } from './kill-ladder.ts';
import { killEveryEscapee } from './leftovers.ts';
import type { Unstopped } from './run.ts';

/** The children a teardown works on: whatever is there when it looks. */
export interface Living {
  readonly log: Log;
  /** Deepest first. */
  all(): readonly Child[];
  /** Those whose group SIGKILL did not empty earlier on. */
  unkillable(): readonly Child[];
  /** Resolves when there is none. */
  empty(): Promise<void>;
}

/** Those of a book of children, and how to hear that it is empty. */
export function livingOf(
  log: Log,
  children: ReadonlySet<Child>,
  unkillable: readonly Child[],
  onceEmpty: (tell: () => void) => void,
): Living {
  return {
    log,
    all: () => [...children].sort((a, b) => (b.run?.depth ?? -1) - (a.run?.depth ?? -1)),
    unkillable: () => unkillable,
    empty: () => (children.size === 0 ? Promise.resolve() : new Promise((resolve) => onceEmpty(resolve))),
  };
}

/**
 * Lets running work finish its turn, then moves what is left up the kill ladder, so that everything
 * is gone or reported within `budgetMs`.
 */
export async function drainChildren(
  living: Living,
  budgetMs: number,
  timings: LadderTimings,
): Promise<readonly Unstopped[]> {
  const plan = planDrain(budgetMs, timings);
  for (const child of living.all()) {
    // Warm and starting children have no turn to finish.
    if (child.run === null) child.stop('drain');
    else child.windDown(Math.round(plan.cancelAt));
  }
  return climb(living, [
    [plan.cancelAt, (child) => child.stop('drain')],
    [plan.termAt, (child) => child.hurry('terminate', 'drain')],
    [plan.killAt, (child) => child.hurry('kill', 'drain')],
    [plan.reportAt, () => {}],
  ]);
}

/** SIGKILL to every group, now. */
export function killChildren(living: Living, budgetMs: number): Promise<readonly Unstopped[]> {
  return climb(living, [
    [0, (child) => child.stop('forced', 0)],
    [budgetMs, () => {}],
  ]);
}

async function climb(
  living: Living,
  steps: readonly (readonly [number, (child: Child) => void])[],
): Promise<readonly Unstopped[]> {
  const timers = new Set<NodeJS.Timeout>();
  const bound = new Promise<void>((resolve) => {
    const last = steps.length - 1;
    steps.forEach(([at, act], index) => {
      const step = (): void => {
        for (const child of living.all()) act(child);
        if (index === last) resolve();
      };
      if (at <= 0) step();
      else timers.add(setTimeout(step, at));
    });
  });
  await Promise.race([living.empty(), bound]);
  for (const timer of timers) clearTimeout(timer);
  killEveryEscapee(living.log);
  const lost = living.unkillable().filter((child) => child.process.members().length > 0);
  return [...living.all(), ...lost].map((child) => unstopped(child));
}

function unstopped(child: Child): Unstopped {
  const [member] = child.process.members();
  return {
    runId: child.run?.spec.runId ?? '',
    agentPath: child.run?.path ?? '',
    pid: member?.pid ?? child.pid ?? 0,
    state: `${child.name}, process state ${member?.state ?? 'unknown'}`,
  };
}
