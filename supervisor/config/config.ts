import type { LogLevel } from '../../protocol/event-line.ts';
import type { SecretRef } from './secret.ts';

/**
 * The configuration after all layers are merged, expanded and validated. Everything in it is
 * plain data in base units (ms, bytes, counts); secrets stay references until they are used.
 */
export interface Config {
  readonly mode: Mode;
  readonly identity: Identity;
  /** Given by `--run-id`; minted when null. */
  readonly runId: string | null;
  /** Given by `--traceparent`; minted when null. */
  readonly traceparent: string | null;
  readonly instruction: string | null;
  /** JSON Schema the final answer must satisfy. */
  readonly outputContract: Record<string, unknown> | null;
  readonly intelligence: IntelligenceConfig;
  readonly mcpServers: readonly McpServerConfig[];
  readonly routes: readonly RouteConfig[];
  /** What to watch: as declared, and the match of every route none of those could feed. */
  readonly subscriptions: readonly SubscriptionConfig[];
  readonly standby: StandbyConfig | null;
  readonly shard: ShardConfig;
  readonly schedule: ScheduleConfig | null;
  readonly limits: LimitsConfig;
  readonly lifecycle: LifecycleConfig;
  readonly serve: ServeConfig | null;
  readonly observability: ObservabilityConfig;
  readonly cgroup: CgroupConfig | null;
  /** Remaps exit codes 3 and 7. */
  readonly budgetExitCode: number | null;
  readonly allowTrifecta: boolean;
  /** PEM file of extra certificate authorities. */
  readonly tlsCa: string | null;
  /** Reload when a file the configuration was read from changes. */
  readonly watchConfig: boolean;
}

export type Mode = 'once' | 'loop' | 'reactive' | 'schedule';

export interface Identity {
  readonly instance: string;
  readonly podUid: string | null;
  readonly namespace: string | null;
  readonly node: string | null;
}

export interface IntelligenceConfig {
  /** In order of preference; empty when none was configured. `script:…`, `https:` or loopback `http:`. */
  readonly endpoints: readonly { readonly url: string; readonly token: SecretRef | null }[];
  readonly model: string | null;
  readonly timeoutMs: number;
  readonly maxAttempts: number;
  /** Children without a run hold a connection to the endpoint open. */
  readonly holdConnection: boolean;
}

export interface McpServerConfig {
  readonly name: string;
  readonly transport:
    | {
        readonly kind: 'http';
        readonly url: string;
        readonly headers: Readonly<Record<string, string | SecretRef>>;
      }
    | {
        readonly kind: 'stdio';
        /** Program and arguments; never passed through a shell. */
        readonly command: readonly [string, ...string[]];
        readonly env: Readonly<Record<string, string | SecretRef>>;
        readonly cwd: string | null;
      };
  /** Data-flow tags for the Rule of Two: untrusted_input, sensitive, egress. */
  readonly tags: readonly string[];
  /** A required server that cannot be reached at start is exit 6. */
  readonly required: boolean;
  /** Longest a call may go without an answer or progress, ms. */
  readonly timeoutMs: number;
}

export interface RouteConfig {
  /** Stable over replicas and restarts: it is part of the claim key. Default: the match text. */
  readonly name: string;
  /** Which server's updates it takes; null for any. */
  readonly server: string | null;
  /** An exact URI or a glob. */
  readonly match: string;
  readonly disposition: { readonly kind: 'spawn' } | { readonly kind: 'continue'; readonly session: string };
  readonly claim: ClaimConfig | null;
  /** Null: the agent's instruction. */
  readonly instruction: string | null;
  readonly outputContract: Record<string, unknown> | null;
  readonly shardKey: ShardKeyConfig;
  readonly debounceMs: number;
  readonly maxInflight: number;
  /** Null: the number of distinct watched URIs, at least 16. */
  readonly queueCap: number | null;
  readonly overflow: 'coalesce' | 'drop_oldest' | 'drop_newest' | 'block';
  /** Globs over `server__tool`; null: every tool but the coordination server's work.* */
  readonly tools: readonly string[] | null;
}

export interface SubscriptionConfig {
  /** Null: at every server. */
  readonly server: string | null;
  /** An exact URI or a glob. */
  readonly match: string;
}

export interface ClaimConfig {
  readonly server: string;
  readonly style: 'tool' | 'resource';
  readonly ttlMs: number;
  /** In (0,1): renew when this fraction of the ttl has passed. */
  readonly renewFraction: number;
  /**
   * What the claim is for. `run_id`: the derived claim key, one run per URI and route. `item`: the
   * URI. Otherwise a template over {{uri}}, {{route}}, {{server}}, {{last_modified}}, {{size}}.
   */
  readonly key: string;
}

export type ShardKeyConfig =
  | { readonly kind: 'uri' }
  | { readonly kind: 'segment'; readonly name: string; readonly template: string }
  | { readonly kind: 'regex'; readonly pattern: string; readonly group: string | number }
  | { readonly kind: 'metadata'; readonly pointer: string };

export interface StandbyConfig {
  readonly assignFrom: { readonly server: string; readonly uri: string };
  /** Of the leases it pulls. */
  readonly ttlMs: number;
  readonly renewFraction: number;
}

export interface ShardConfig {
  readonly index: number;
  /** 1: unsharded. */
  readonly count: number;
  readonly timer: 'shard0' | 'keyed';
}

export interface ScheduleConfig {
  /** Milliseconds between ticks, or null for cron. */
  readonly intervalMs: number | null;
  /** Five fields, UTC. */
  readonly cron: string | null;
}

export interface LimitsConfig {
  readonly maxSteps: number;
  readonly maxTokens: number;
  readonly maxDepth: number;
  readonly maxChildren: number;
  readonly maxTotalSubagents: number;
  readonly deadlineMs: number;
  readonly treeTokens: number;
  /** Null: unbounded. */
  readonly budgetTokensLifetime: number | null;
  readonly noProgressMs: number;
  readonly warmChildren: number;
  readonly childMemoryMaxBytes: number | null;
}

export interface LifecycleConfig {
  readonly drainTimeoutMs: number;
  readonly podGraceMs: number | null;
}

export interface ServeConfig {
  readonly url: string;
  readonly certFile: string | null;
  readonly keyFile: string | null;
  readonly clientCaFile: string | null;
  readonly bearer: SecretRef | null;
}

export interface ObservabilityConfig {
  /** HOST:PORT of /metrics, /healthz and /readyz; null: off. */
  readonly metricsAddr: string | null;
  readonly healthFile: string | null;
  readonly reportFile: string | null;
  readonly eventsRing: number;
  readonly serveEvents: boolean;
  readonly logLevel: LogLevel;
  readonly logFormat: 'json' | 'text';
  /** Log prompts, arguments and results themselves instead of hash and length. */
  readonly logContent: boolean;
  /** Free text that children write is logged in full instead of as a sample. */
  readonly aggregateLogs: boolean;
  /** Base URL of an OTLP receiver traces are sent to; null: none are made. */
  readonly otelEndpoint: string | null;
  /** The agent to debug; null: none. */
  readonly inspectChild: { readonly path: string; readonly port: number } | null;
  /** Only lines of these agents and of what is below them are written; empty: all. */
  readonly onlyPaths: readonly string[];
}

export interface CgroupConfig {
  /** `auto` or the path of a delegated cgroup v2 folder. */
  readonly root: string;
  readonly memoryMaxBytes: number | null;
  readonly pidsMax: number | null;
}
