import { resolve } from 'node:path';
import type { Config, LimitsConfig, Mode, ObservabilityConfig, StandbyConfig } from './config.ts';
import { type ResolveContext, refuse } from './context.ts';
import { readInstruction } from './instruction.ts';
import { type RouteFlags, resolveRoutes, splitServer } from './resolve-routes.ts';
import { resolveIntelligence, resolveServers, SERVER_NAMES } from './resolve-servers.ts';
import type { ConfigDocument } from './schema.ts';
import { resolveShard } from './shard.ts';
import type { ServerTags } from './shorthand.ts';

/** What is known beside the document. */
export interface ResolveFacts {
  /** Of the verb, when nothing says otherwise. */
  readonly defaultMode: Mode;
  /** Whether standard error is a terminal. */
  readonly terminal: boolean;
  readonly routeFlags: RouteFlags;
  /** `--mcp-tags`. */
  readonly tagFlags: readonly ServerTags[];
}

/** From a valid document to the configuration; what does not fit is recorded in `context.problems`. */
export async function resolveConfig(
  document: ConfigDocument,
  facts: ResolveFacts,
  context: ResolveContext,
): Promise<Config> {
  const mode = document.mode ?? facts.defaultMode;
  const mcpServers = resolveServers(document.mcp.servers, facts.tagFlags, context);
  // Also of those that cannot be used: a mention of them is no mistake.
  const names = document.mcp.servers.map(({ name }) => name);
  const { routes, subscriptions } = await resolveRoutes(document, facts.routeFlags, names, context);
  const { schedule, lifecycle, serve, cgroup } = document;
  const file = (path: string | undefined): string | null =>
    path === undefined ? null : resolve(context.cwd, path);
  return {
    mode,
    identity: {
      instance:
        document.agent.name ??
        variable(context, 'AGENT_POD_NAME') ??
        variable(context, 'HOSTNAME') ??
        'agentd',
      podUid: variable(context, 'AGENT_POD_UID'),
      namespace: variable(context, 'AGENT_POD_NAMESPACE'),
      node: variable(context, 'AGENT_NODE_NAME'),
    },
    runId: document.run_id ?? null,
    traceparent: document.traceparent ?? null,
    instruction: readInstruction(document.agent, ['agent'], 'the agent', context),
    outputContract: document.agent.output_contract ?? null,
    intelligence: resolveIntelligence(document.intelligence, document.standby, context),
    mcpServers,
    routes,
    subscriptions,
    standby: resolveStandby(document.standby, document.claim, names, context),
    shard: resolveShard(document.shard.index, document.shard.timer, context),
    schedule:
      schedule.interval === undefined && schedule.cron === undefined
        ? null
        : { intervalMs: schedule.interval ?? null, cron: schedule.cron ?? null },
    limits: resolveLimits(document.limits, mode, document.standby.enabled),
    lifecycle: { drainTimeoutMs: lifecycle.drain_timeout, podGraceMs: lifecycle.pod_grace ?? null },
    serve:
      serve.mcp === undefined
        ? null
        : {
            url: serve.mcp,
            certFile: file(serve.cert),
            keyFile: file(serve.key),
            clientCaFile: file(serve.client_ca),
            bearer: serve.bearer ?? null,
          },
    observability: resolveObservability(document.observability, facts.terminal, file),
    cgroup:
      cgroup.root === undefined
        ? null
        : { root: cgroup.root, memoryMaxBytes: cgroup.memory_max ?? null, pidsMax: cgroup.pids_max ?? null },
    budgetExitCode: document.budget_exit_code ?? null,
    allowTrifecta: document.allow_trifecta,
    tlsCa: file(document.tls_ca),
    watchConfig: document.watch_config,
  };
}

function resolveStandby(
  { enabled, assign_from: from }: ConfigDocument['standby'],
  claim: ConfigDocument['claim'],
  servers: readonly string[],
  context: ResolveContext,
): StandbyConfig | null {
  if (!enabled) return null;
  const { server, match } = splitServer(from ?? '', servers);
  if (server !== null) {
    return { assignFrom: { server, uri: match }, ttlMs: claim.ttl, renewFraction: claim.renew_fraction };
  }
  const path = ['standby', 'assign_from'];
  refuse(
    context,
    path,
    'standby needs to know who assigns: assign_from must be SERVER:URI with a declared server',
    {
      needs: [path, SERVER_NAMES],
      remedy: 'Give --assign-from SERVER:URI, such as coord:work://pending, and declare SERVER with --mcp.',
      left: 'out',
    },
  );
  return null;
}

/** A reactive supervisor keeps a child warm; one in standby fills every slot (contract, section 8). */
function resolveLimits(document: ConfigDocument['limits'], mode: Mode, standby: boolean): LimitsConfig {
  const warm = standby ? document.max_total_subagents : mode === 'reactive' ? 1 : 0;
  return {
    maxSteps: document.max_steps,
    maxTokens: document.max_tokens,
    maxDepth: document.max_depth,
    maxChildren: document.max_children,
    maxTotalSubagents: document.max_total_subagents,
    deadlineMs: document.deadline,
    treeTokens: document.tree_tokens,
    budgetTokensLifetime: document.budget_tokens ?? null,
    noProgressMs: document.no_progress,
    warmChildren: Math.min(document.warm_children ?? warm, document.max_total_subagents),
    childMemoryMaxBytes: document.child_memory_max ?? null,
  };
}

function resolveObservability(
  { log, ...document }: ConfigDocument['observability'],
  terminal: boolean,
  file: (path: string | undefined) => string | null,
): ObservabilityConfig {
  return {
    metricsAddr: document.metrics_addr ?? null,
    healthFile: file(document.health_file),
    reportFile: file(document.report_file),
    eventsRing: document.events_ring,
    serveEvents: document.serve_events,
    logLevel: log.level,
    logFormat: log.format ?? (terminal ? 'text' : 'json'),
    logContent: log.content,
    aggregateLogs: log.aggregate,
    otelEndpoint: document.otel?.endpoint ?? null,
    onlyPaths: log.only,
    inspectChild: inspection(document.inspect_child),
  };
}

/** `HANDLE[:PORT]`; Node's own port when none is given. */
function inspection(text: string | undefined): ObservabilityConfig['inspectChild'] {
  if (text === undefined) return null;
  const [path = '', port = '9229'] = text.split(':');
  return { path, port: Number(port) };
}

/** An empty variable is an unset one. */
function variable(context: ResolveContext, name: string): string | null {
  const value = context.env[name];
  return value === undefined || value === '' ? null : value;
}
