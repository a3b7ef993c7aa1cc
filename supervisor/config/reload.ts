import { isDeepStrictEqual } from 'node:util';
import type { Config, McpServerConfig } from './config.ts';

/** What may change while the process runs, by the key of the configuration file. */
export const RELOADABLE = {
  'agent.instruction': (config) => config.instruction,
  'agent.output_contract': (config) => config.outputContract,
  intelligence: (config) => config.intelligence,
  'mcp.servers': (config) => config.mcpServers,
  subscribe: (config) => config.subscriptions,
  routes: (config) => config.routes,
  limits: (config) => config.limits,
  'observability.log.level': (config) => config.observability.logLevel,
} as const satisfies Record<string, (config: Config) => unknown>;
export type ReloadPart = keyof typeof RELOADABLE;

/** Why a key cannot change while the process runs. */
const IDENTITY = 'it is who this instance is to its fleet and to the ledger';
const LISTENER = 'listeners stay open for the life of the process';
const FILE = 'files and streams are opened once';
const LIFE = 'it decides how the process lives and ends';
const FLEET = 'every replica must agree on it';
const SAFETY = 'it is decided once, by who starts the process';

/** Everything else: changing it needs a restart. */
const FIXED: Readonly<Record<string, readonly [(config: Config) => unknown, string]>> = {
  mode: [(config) => config.mode, LIFE],
  'agent.name': [(config) => config.identity, IDENTITY],
  run_id: [(config) => config.runId, IDENTITY],
  traceparent: [(config) => config.traceparent, IDENTITY],
  standby: [(config) => config.standby, LIFE],
  'shard.index': [({ shard }) => [shard.index, shard.count], FLEET],
  'shard.timer': [({ shard }) => shard.timer, FLEET],
  schedule: [(config) => config.schedule, LIFE],
  'lifecycle.drain_timeout': [({ lifecycle }) => lifecycle.drainTimeoutMs, LIFE],
  'lifecycle.pod_grace': [({ lifecycle }) => lifecycle.podGraceMs, LIFE],
  serve: [(config) => config.serve, LISTENER],
  'observability.metrics_addr': [({ observability }) => observability.metricsAddr, LISTENER],
  'observability.health_file': [({ observability }) => observability.healthFile, FILE],
  'observability.report_file': [({ observability }) => observability.reportFile, FILE],
  'observability.events_ring': [({ observability }) => observability.eventsRing, FILE],
  'observability.serve_events': [({ observability }) => observability.serveEvents, LISTENER],
  'observability.log.format': [({ observability }) => observability.logFormat, FILE],
  'observability.log.content': [({ observability }) => observability.logContent, SAFETY],
  'observability.otel.endpoint': [({ observability }) => observability.otelEndpoint, FILE],
  'observability.log.aggregate': [({ observability }) => observability.aggregateLogs, FILE],
  'observability.inspect_child': [({ observability }) => observability.inspectChild, LIFE],
  'observability.log.only': [({ observability }) => observability.onlyPaths, FILE],
  cgroup: [(config) => config.cgroup, SAFETY],
  budget_exit_code: [(config) => config.budgetExitCode, LIFE],
  allow_trifecta: [(config) => config.allowTrifecta, SAFETY],
  tls_ca: [(config) => config.tlsCa, SAFETY],
  watch_config: [(config) => config.watchConfig, LIFE],
};

/** What becomes of the MCP servers. One that is changed goes and comes back. */
export interface ServerChanges {
  readonly added: readonly McpServerConfig[];
  readonly changed: readonly McpServerConfig[];
  readonly removed: readonly string[];
}

export interface ReloadChanges {
  readonly parts: ReadonlySet<ReloadPart>;
  readonly servers: ServerChanges;
}

export type ReloadDecision =
  | { readonly kind: 'unchanged' }
  | { readonly kind: 'apply'; readonly changes: ReloadChanges }
  /** The whole of it: a part of a configuration is none. */
  | { readonly kind: 'reject'; readonly keys: readonly { readonly key: string; readonly reason: string }[] };

/**
 * What a running process does about a new configuration that is valid in itself: all of it, or
 * nothing when it changes a key that cannot change. Pure.
 */
export function decideReload(from: Config, to: Config): ReloadDecision {
  const differs = (of: (config: Config) => unknown): boolean => !isDeepStrictEqual(of(from), of(to));
  const keys = Object.entries(FIXED).flatMap(([key, [of, reason]]) => (differs(of) ? [{ key, reason }] : []));
  if (keys.length > 0) return { kind: 'reject', keys };
  const parts = new Set(PARTS.filter((part) => differs(RELOADABLE[part])));
  if (parts.size === 0) return { kind: 'unchanged' };
  return { kind: 'apply', changes: { parts, servers: serverChanges(from.mcpServers, to.mcpServers) } };
}

const PARTS = Object.keys(RELOADABLE) as readonly ReloadPart[];

function serverChanges(from: readonly McpServerConfig[], to: readonly McpServerConfig[]): ServerChanges {
  const before = new Map(from.map((server) => [server.name, server]));
  const after = new Set(to.map(({ name }) => name));
  return {
    added: to.filter(({ name }) => !before.has(name)),
    changed: to.filter((server) => {
      const known = before.get(server.name);
      return known !== undefined && !isDeepStrictEqual(known, server);
    }),
    removed: from.filter(({ name }) => !after.has(name)).map(({ name }) => name),
  };
}
