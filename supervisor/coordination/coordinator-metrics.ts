import type { Registry } from 'prom-client';
import type { CallOutcome } from './work-tool.ts';
import { WORK_TOOLS } from './work-tools.ts';

/** The series of a coordination server, beyond the contract's. Every label value is of a closed set. */
export const COORDINATOR_METRICS = {
  up: { name: 'agentd_coordinate_up', help: '1 while the coordination server runs.' },
  draining: { name: 'agentd_coordinate_draining', help: '1 from the start of a drain.' },
  ledgerUp: { name: 'agentd_coordinate_ledger_up', help: '1 while the database answers.' },
  items: {
    name: 'agentd_coordinate_items',
    help: 'Items in the ledger, by what they wait for. The same on every server of one database.',
    labels: { state: ['pending', 'claimed', 'dead_letter', 'done'] },
  },
  oldestAge: {
    name: 'agentd_coordinate_oldest_age_ms',
    help: 'Age of the oldest item that could be claimed now, milliseconds.',
  },
  sessions: { name: 'agentd_coordinate_sessions', help: 'MCP sessions open at this server.' },
  calls: {
    name: 'agentd_coordinate_calls_total',
    help: 'Calls of work tools answered. lost: somebody else has it; refused: not the holder any more.',
    labels: {
      tool: [...WORK_TOOLS.map((tool) => tool.name)],
      outcome: ['ok', 'lost', 'refused', 'error'] satisfies CallOutcome[],
    },
  },
  callDuration: {
    name: 'agentd_coordinate_call_duration_ms',
    help: 'Time to answer a call, the commit included, milliseconds.',
    labels: { tool: [...WORK_TOOLS.map((tool) => tool.name)] },
    buckets: [0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 1_000, 5_000],
  },
  expired: {
    name: 'agentd_coordinate_leases_expired_total',
    help: 'Leases this server found expired in its housekeeping.',
  },
} as const;

/** What is read at each scrape. */
export interface CoordinatorSnapshot {
  readonly draining: boolean;
  readonly sessions: number;
  /** Null: the database does not answer. */
  readonly ledger: {
    readonly pending: number;
    readonly claimed: number;
    readonly deadLetter: number;
    readonly done: number;
    readonly oldestAgeMs: number;
  } | null;
}

export interface CoordinatorMetrics {
  called(tool: string, outcome: CallOutcome, durationMs: number): void;
  expired(count: number): void;
  /** Prometheus text exposition format. */
  render(): Promise<string>;
}

/** @param snapshot must settle within a bound of its own */
export async function createCoordinatorMetrics(
  snapshot: () => Promise<CoordinatorSnapshot>,
): Promise<CoordinatorMetrics> {
  const { Counter, Gauge, Histogram, Registry } = await import('prom-client');
  const registry: Registry = new Registry();
  const registers = [registry];
  const { up, draining, ledgerUp, items, oldestAge, sessions, calls, callDuration, expired } =
    COORDINATOR_METRICS;
  const gauge = ({ name, help }: { readonly name: string; readonly help: string }) =>
    new Gauge({ name, help, registers });
  const gauges = {
    up: gauge(up),
    draining: gauge(draining),
    ledgerUp: gauge(ledgerUp),
    oldestAge: gauge(oldestAge),
    sessions: gauge(sessions),
    items: new Gauge({ name: items.name, help: items.help, labelNames: ['state'], registers }),
  };
  const callCount = new Counter({
    name: calls.name,
    help: calls.help,
    labelNames: ['tool', 'outcome'],
    registers,
  });
  for (const tool of calls.labels.tool) {
    for (const outcome of calls.labels.outcome) callCount.inc({ tool, outcome }, 0);
  }
  const durations = new Histogram({
    name: callDuration.name,
    help: callDuration.help,
    labelNames: ['tool'],
    buckets: [...callDuration.buckets],
    registers,
  });
  const expiredCount = new Counter({ name: expired.name, help: expired.help, registers });

  return {
    called: (tool, outcome, durationMs) => {
      callCount.inc({ tool, outcome });
      durations.observe({ tool }, durationMs);
    },
    expired: (count) => expiredCount.inc(count),
    render: async () => {
      const now = await snapshot();
      gauges.up.set(1);
      gauges.draining.set(now.draining ? 1 : 0);
      gauges.sessions.set(now.sessions);
      gauges.ledgerUp.set(now.ledger === null ? 0 : 1);
      if (now.ledger !== null) {
        gauges.items.set({ state: 'pending' }, now.ledger.pending);
        gauges.items.set({ state: 'claimed' }, now.ledger.claimed);
        gauges.items.set({ state: 'dead_letter' }, now.ledger.deadLetter);
        gauges.items.set({ state: 'done' }, now.ledger.done);
        gauges.oldestAge.set(now.ledger.oldestAgeMs);
      }
      return await registry.metrics();
    },
  };
}
