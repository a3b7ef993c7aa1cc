import type { OperatorResult, StatusDocument, SubagentDocument } from '../../protocol/management.ts';
import type { CapabilitiesManifest } from '../../protocol/manifest.ts';
import type { RunReport } from '../../protocol/run-report.ts';
import type { ManagementPort } from '../../supervisor/surface/management-port.ts';
import { EventRing } from '../../supervisor/telemetry/event-ring.ts';

/** A supervisor that remembers what it was told, with one running subagent "0.2". */
export interface FakeManagementPort extends ManagementPort {
  /** Commands in the order they came. */
  readonly commands: readonly unknown[][];
  readonly ring: EventRing;
  hideEvents: boolean;
}

const REPORT: RunReport = {
  report_schema: '1.0',
  run_id: 'run-1',
  mode: 'once',
  status: 'completed',
  exit_code: 0,
  has_usable_partial: false,
  usage: { tokens_in: 1, tokens_out: 2, steps: 3, subagents: 0 },
  duration_ms: 5,
  started_at: '2026-03-01T00:00:00.000Z',
  ended_at: '2026-03-01T00:00:05.000Z',
  distillate_ref: 'agent://subagent/0/result',
  refusals: { trifecta: 0, rate: 0, budget: 0, depth: 0, mcp: 0 },
};
const SUBAGENT: SubagentDocument = {
  handle: '0.2',
  run_id: 'run-2',
  parent: '0',
  status: 'running',
  route: null,
  usage: { tokens_in: 0, tokens_out: 0, steps: 1, subagents: 0 },
  has_usable_partial: false,
};

export function fakeManagementPort(): FakeManagementPort {
  const commands: unknown[][] = [];
  const ring = new EventRing(100);
  const standing: OperatorResult = { draining: false, lame_duck: false, paused: false };
  const took = async (command: string, ...args: unknown[]): Promise<void> => {
    commands.push([command, ...args]);
  };
  const status: StatusDocument = {
    instance: 'fake',
    run_id: 'r',
    mode: 'reactive',
    shard: null,
    phase: 'running',
    ready: true,
    reasons: [],
    paused: false,
    lame_duck: false,
    draining: false,
    started_at: '2026-03-01T00:00:00.000Z',
    uptime_ms: 1,
    config_generation: 1,
    active_subagents: 1,
    process: { pid: 4711, cpu_percent: 1.5, rss_bytes: 90 * 1024 * 1024 },
    pending_events: 0,
    inflight_reactions: 0,
    budget_tokens_remaining: null,
  };
  const port: FakeManagementPort = {
    commands,
    ring,
    hideEvents: false,
    capabilities: () => ({ contract_version: '1.0' }) as CapabilitiesManifest,
    status: () => status,
    inventory: () => ({
      subagents: [SUBAGENT],
      sessions: [],
      routes: [],
      mcp_servers: [],
      subscriptions_active: 0,
    }),
    capacity: () => ({
      instance: 'fake',
      shard: null,
      standby: false,
      free_slots: 3,
      active_subagents: 1,
      warm_children: 0,
      max_total_subagents: 4,
      saturation: 0.25,
      intelligence: { warm: false, healthy: 'unknown' },
    }),
    intelligence: () => ({ all_down: false, endpoints: [] }),
    metrics: async () => '# TYPE agent_up gauge\nagent_up 1\n',
    events: (query) => (port.hideEvents ? null : ring.read(query)),
    effectiveConfig: () => ({ serve: { bearer: '{{secret:TOKEN}}' } }),
    run: (runId) => (runId === REPORT.run_id ? REPORT : null),
    session: (id) => (id === 'inbox/ä' ? { id, run_id: null, state: 'idle', turns: 2 } : null),
    subagent: (handle) => (handle === SUBAGENT.handle ? SUBAGENT : null),
    result: (handle) =>
      handle === '0.1'
        ? { handle, run_id: 'run-1', status: 'completed', result: 'done', has_usable_partial: false }
        : null,
    drain: async (deadlineMs) => {
      await took('drain', deadlineMs);
      return { ...standing, draining: true };
    },
    lameDuck: async (on) => {
      await took('lameDuck', on);
      return { ...standing, lame_duck: on };
    },
    pause: async () => {
      await took('pause');
      return { ...standing, paused: true };
    },
    resume: async () => {
      await took('resume');
      return standing;
    },
    cancel: async (handle, reason) => {
      await took('cancel', handle, reason);
      return handle === SUBAGENT.handle;
    },
    spawn: async (request) => {
      await took('spawn', request);
      return { handle: '0.3', runId: 'run-3' };
    },
    send: (handle, message) => took('send', handle, message),
    watch: (server, uri) => took('watch', server, uri),
    unwatch: (server, uri) => took('unwatch', server, uri),
    readResource: async (server, uri) => {
      await took('read', server, uri);
      return { text: 'body', mimeType: 'text/plain' };
    },
    assign: (server, uri) => took('assign', server, uri),
  };
  return port;
}
