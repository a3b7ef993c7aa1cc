import { killEveryEscapee } from '../children/leftovers.ts';
import type { Children } from '../children/run.ts';
import type { LeaseKeeper } from '../gates/lease-keeper.ts';
import type { Timers } from '../reactor/timers.ts';
import type { Log } from '../telemetry/log.ts';
import type { Traces } from '../telemetry/traces.ts';
import type { Connections } from './connections.ts';
import type { DrainActions } from './drain.ts';
import { releaseBudget } from './drain-machine.ts';
import type { StartedTriggers } from './start-triggers.ts';

/** Longest wait for connections to close at the end, ms: nothing of value is in flight by then. */
const CLOSE_MS = 500;
/** Longest wait for the last spans to be taken, ms: a collector that is away must not hold up an end. */
const TRACES_MS = 2_000;

/** What each step of a drain does. */
export function drainActions(parts: {
  readonly children: Children;
  readonly keeper: LeaseKeeper;
  readonly links: Connections;
  readonly timers: Timers;
  readonly triggers: () => StartedTriggers | null;
  readonly traces: Traces | null;
  readonly log: Log;
  readonly drainTimeoutMs: number;
}): DrainActions {
  const { children, keeper, links, timers } = parts;
  return {
    disarm: () => {
      parts.triggers()?.stop();
      timers.clear('loop');
      links.disarm();
      children.setWarmTarget(0);
    },
    releaseOffers: (budgetMs) => {
      keeper.drain(releaseBudget(parts.drainTimeoutMs));
      return keeper.settled('offered', budgetMs);
    },
    stopChildren: (budgetMs) => children.drain(budgetMs),
    releaseLeases: async (budgetMs) => {
      await keeper.settled('all', budgetMs);
      return keeper.open().map(({ item }) => item);
    },
    flush: async (budgetMs) => {
      await Promise.all([
        links.close(Math.min(budgetMs, CLOSE_MS)),
        parts.traces?.flush(Math.min(budgetMs, TRACES_MS)),
      ]);
      // Servers over stdio have ended only now; nothing of theirs may outlive us (invariant 6).
      if (links.peers().length > 0) killEveryEscapee(parts.log);
    },
    killAll: (budgetMs) => children.killAll(budgetMs),
  };
}
