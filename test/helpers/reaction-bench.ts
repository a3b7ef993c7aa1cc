import { expect } from 'vitest';
import type { RunSpec, StopCause } from '../../supervisor/children/run.ts';
import type { ClaimConfig, RouteConfig } from '../../supervisor/config/config.ts';
import type { ClaimTarget } from '../../supervisor/gates/lease-keeper.ts';
import type { ResourceInfo } from '../../supervisor/mcp/peers.ts';
import type { SupervisorEvent } from '../../supervisor/reactor/event.ts';
import { Timers } from '../../supervisor/reactor/timers.ts';
import { Intake } from '../../supervisor/routing/intake.ts';
import { Reactions } from '../../supervisor/routing/reactions.ts';
import { createMetrics } from '../../supervisor/telemetry/metrics-exporter.ts';
import { ManualClock } from './manual-clock.ts';
import { nullLog } from './null-log.ts';
import { routeConfig } from './route-config.ts';

export const CLAIM: ClaimConfig = {
  server: 'coord',
  style: 'tool',
  ttlMs: 1_000,
  renewFraction: 0.33,
  key: 'run_id',
};

/** Reactions over fakes: everything they ask for is recorded, nothing happens by itself. */
export function bench(
  routes: readonly Partial<RouteConfig>[],
  over: { describe?: () => Promise<ResourceInfo | null> } = {},
) {
  const clock = new ManualClock();
  const timers = new Timers(clock);
  const launched: RunSpec[] = [];
  const stopped: [string, StopCause, number | undefined][] = [];
  const offered: [string, ClaimTarget][] = [];
  const adopted: [string, string][] = [];
  const settled: [string, string, string][] = [];
  const posted: SupervisorEvent[] = [];
  const gate = {
    starting: false,
    draining: false,
    paused: false,
    lameDuck: false,
    cannotSpawn: false,
    budgetRemaining: null,
  };
  const metrics = createMetrics();
  const intake = new Intake(
    { routes: routes.map(routeConfig), shard: { index: 0, count: 1, timer: 'shard0' } },
    nullLog,
    metrics,
    () => 16,
  );
  let ids = 0;
  const reactions = new Reactions(intake, {
    clock,
    timers,
    children: {
      launch: (spec) => launched.push(spec),
      stop: (runId, cause, withinMs) => stopped.push([runId, cause, withinMs]),
      get active() {
        return launched.length;
      },
    },
    keeper: {
      offer: (id, target) => offered.push([id, target]),
      adopt: (id, _target, grant) => adopted.push([id, grant.leaseId]),
      giveBack: (id, _target, _grant, reason) => settled.push([id, 'given_back', reason]),
      completed: (id, result) => settled.push([id, 'completed', result]),
      notCompleted: (id, reason) => settled.push([id, 'not_completed', reason]),
    },
    log: nullLog,
    metrics,
    post: (event) => posted.push(event),
    random: () => 0.5,
    newRunId: () => `run-${++ids}`,
    traceparent: () => '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
    spec: (_lane, run) => ({
      runId: run.runId,
      kind: 'run',
      instruction: 'do',
      event: { uri: run.uri, server: run.server, sequence: 1 },
      tools: [],
      limits: { max_steps: 1, max_tokens: 1, deadline_ms: 1, tool_timeout_ms: 1 },
      outputContract: null,
      traceparent: run.traceparent,
      route: null,
    }),
    describe: over.describe ?? (() => Promise.resolve(null)),
    gate: () => gate,
    maxTotal: () => 64,
  });
  const hear = (uri: string): void => {
    intake.hear({ server: 's', uri, cause: 'notification', at: clock.now() }, clock.now());
    reactions.pump();
  };
  const lane = intake.lanes[0];
  if (lane === undefined) throw new Error('a bench needs a route');
  return { clock, timers, launched, stopped, offered, adopted, settled, posted, gate, reactions, hear, lane };
}

/** The single element of a list. */
export const only = <T>(items: readonly T[]): T => {
  expect(items).toHaveLength(1);
  return items[0] as T;
};
