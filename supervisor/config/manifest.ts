import type { CapabilitiesManifest } from '../../protocol/manifest.ts';
import { VERSIONS } from '../../protocol/versions.ts';
import type { Config } from './config.ts';
import { implementedFeatures, isImplemented } from './implemented.ts';
import { shardLabel } from './shard.ts';

/** What only a running supervisor knows; before it runs, everything is off or unknown. */
export interface LiveFacts {
  readonly runId: string;
  readonly agentVersion: string;
  readonly intelligenceHealthy: boolean | 'unknown';
  /** The management URL being served, or false. */
  readonly management: string | false;
  /** The HOST:PORT metrics are served at, or false. */
  readonly metrics: string | false;
}

/** Served by every build, whatever the configuration. */
const BASE_FEATURES = ['anthropic-messages', 'coordinate', 'inbox', 'mcp', 'openai-chat', 'script', 'sqlite'];

/** The one builder of the manifest, for `--capabilities` and `agent://capabilities`. */
export function buildManifest(config: Config, facts: LiveFacts): CapabilitiesManifest {
  const { identity, limits, shard } = config;
  const managed = facts.management !== false;
  return {
    contract_version: VERSIONS.contract_version,
    agent_version: facts.agentVersion,
    build_features: [
      ...BASE_FEATURES,
      ...implementedFeatures().map((name) => name.replaceAll('_', '-')),
    ].sort(),
    identity: {
      run_id: facts.runId,
      instance: identity.instance,
      uid: identity.podUid,
      node: identity.node,
      namespace: identity.namespace,
    },
    mode: config.mode,
    model: config.intelligence.model,
    intelligence: {
      transport: config.intelligence.endpoints.some(({ url }) => url.startsWith('https:')) ? 'https' : null,
      endpoints: config.intelligence.endpoints.length,
      healthy: facts.intelligenceHealthy,
    },
    intelligence_summary: { toolmode: 'native' },
    mcp_servers: config.mcpServers.map(({ name, tags }) => ({ name, tags: [...tags] })),
    a2a_peers: [],
    limits: {
      max_depth: limits.maxDepth,
      max_children: limits.maxChildren,
      max_total_subagents: limits.maxTotalSubagents,
      max_steps: limits.maxSteps,
      max_tokens: limits.maxTokens,
      tree_token_budget: limits.treeTokens,
      deadline_ms: limits.deadlineMs,
      drain_timeout_ms: config.lifecycle.drainTimeoutMs,
    },
    exec_enabled: false,
    allow_trifecta: config.allowTrifecta,
    surfaces: {
      management: facts.management,
      operator_tools: managed ? ['a2a.Drain', 'a2a.LameDuck', 'a2a.Pause', 'a2a.Resume', 'a2a.Cancel'] : [],
      a2a: false,
      metrics: facts.metrics,
      metrics_schema: VERSIONS.metrics_schema,
      report_schema: VERSIONS.report_schema,
      events_schema: VERSIONS.events_schema,
      exit_codes: VERSIONS.exit_codes,
      events: managed && config.observability.serveEvents,
      hot_reload: isImplemented('watch_config'),
      config_validate: true,
      config_schema: true,
      intelligence: managed,
      cluster: shard.count > 1 || config.routes.some(({ claim }) => claim !== null),
      standby: config.standby !== null,
      shard: shardLabel(shard),
      ...(config.routes.some(({ claim }) => claim !== null) ? { claim: { styles: claimStyles() } } : {}),
    },
  };
}

function claimStyles(): ('tool' | 'resource')[] {
  return isImplemented('claim_resource') ? ['tool', 'resource'] : ['tool'];
}
