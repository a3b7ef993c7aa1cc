/**
 * Which flag and which variable set which key of the configuration (contract, section 8). Loaded on
 * every start, so it depends on nothing; descriptions and defaults live in the schema.
 */
export interface Setting {
  /** Dotted key in a file. */
  readonly key: string;
  readonly flag?: string;
  /** Further spellings of the flag. */
  readonly aliases?: readonly string[];
  /** What the flag takes; absent: it is a switch. */
  readonly arg?: string;
  /** In order of preference. */
  readonly env?: readonly string[];
  /** How one text becomes the value. Default: as it is. */
  readonly form?: 'csv' | 'route' | 'server' | 'secret' | 'secret-file';
  /** The flag may be given several times and makes a list. */
  readonly repeat?: true;
}

export const SETTINGS: readonly Setting[] = [
  { key: 'mode', flag: '--mode', arg: 'MODE', env: ['AGENT_MODE'] },
  {
    key: 'agent.instruction',
    flag: '--instruction',
    arg: 'TEXT',
    env: ['AGENT_INSTRUCTION', 'INSTRUCTION'],
  },
  { key: 'agent.instruction_file', flag: '--instruction-file', arg: 'PATH' },
  {
    key: 'intelligence.endpoints',
    flag: '--intelligence',
    arg: 'URL[,URL…]',
    env: ['AGENT_INTELLIGENCE', 'INTELLIGENCE'],
    form: 'csv',
  },
  {
    key: 'intelligence.token',
    flag: '--intelligence-token',
    arg: 'REFERENCE',
    env: ['AGENT_INTELLIGENCE_TOKEN'],
    form: 'secret',
  },
  {
    key: 'intelligence.token',
    flag: '--intelligence-token-file',
    arg: 'PATH',
    env: ['AGENT_INTELLIGENCE_TOKEN_FILE'],
    form: 'secret-file',
  },
  { key: 'intelligence.model', flag: '--model', arg: 'NAME', env: ['AGENT_MODEL'] },
  {
    key: 'mcp.servers',
    flag: '--mcp',
    arg: 'NAME=ENDPOINT',
    form: 'server',
    repeat: true,
  },
  { key: 'subscribe', flag: '--subscribe', arg: '[SERVER:]URI', repeat: true },
  { key: 'subscribe', env: ['AGENT_SUBSCRIBE'], form: 'csv' },
  { key: 'routes', flag: '--route', arg: 'MATCH=>ACTION', form: 'route', repeat: true },
  { key: 'claim.ttl', flag: '--claim-ttl', arg: 'DURATION', env: ['AGENT_CLAIM_TTL'] },
  {
    key: 'claim.renew_fraction',
    flag: '--claim-renew-fraction',
    arg: 'FRACTION',
    env: ['AGENT_CLAIM_RENEW_FRACTION'],
  },
  { key: 'shard.index', flag: '--shard', arg: 'K/N', env: ['AGENT_SHARD'] },
  { key: 'shard.timer', flag: '--shard-timer', arg: 'WHICH', env: ['AGENT_SHARD_TIMER'] },
  { key: 'standby.enabled', flag: '--standby', env: ['AGENT_STANDBY'] },
  { key: 'standby.assign_from', flag: '--assign-from', arg: 'SERVER:URI', env: ['AGENT_ASSIGN_FROM'] },
  { key: 'standby.warm_intelligence', env: ['AGENT_WARM_INTEL'] },
  { key: 'limits.warm_children', flag: '--warm-children', arg: 'N', env: ['AGENT_WARM_CHILDREN'] },
  { key: 'schedule.interval', flag: '--interval', arg: 'DURATION', env: ['AGENT_INTERVAL'] },
  { key: 'schedule.cron', flag: '--cron', arg: 'FIELDS', env: ['AGENT_CRON'] },
  { key: 'limits.max_steps', flag: '--max-steps', arg: 'N', env: ['AGENT_MAX_STEPS'] },
  { key: 'limits.max_tokens', flag: '--max-tokens', arg: 'N', env: ['AGENT_MAX_TOKENS'] },
  { key: 'limits.max_depth', flag: '--max-depth', arg: 'N', env: ['AGENT_MAX_DEPTH'] },
  { key: 'limits.max_children', flag: '--max-children', arg: 'N', env: ['AGENT_MAX_CHILDREN'] },
  {
    key: 'limits.max_total_subagents',
    flag: '--max-total-subagents',
    arg: 'N',
    env: ['AGENT_MAX_TOTAL_SUBAGENTS'],
  },
  { key: 'limits.deadline', flag: '--deadline', arg: 'DURATION', env: ['AGENT_DEADLINE'] },
  { key: 'limits.tree_tokens', flag: '--tree-tokens', arg: 'N', env: ['AGENT_TREE_TOKENS'] },
  {
    key: 'limits.budget_tokens',
    flag: '--budget-tokens-lifetime',
    arg: 'N',
    env: ['AGENT_BUDGET_TOKENS'],
  },
  { key: 'lifecycle.drain_timeout', flag: '--drain-timeout', arg: 'DURATION', env: ['AGENT_DRAIN_TIMEOUT'] },
  { key: 'lifecycle.pod_grace', flag: '--pod-grace', arg: 'DURATION', env: ['AGENT_POD_GRACE_SECONDS'] },
  { key: 'serve.mcp', flag: '--serve-mcp', arg: 'URL', env: ['AGENT_SERVE_MCP'] },
  { key: 'serve.cert', flag: '--serve-cert', arg: 'PATH' },
  { key: 'serve.key', flag: '--serve-key', arg: 'PATH' },
  { key: 'serve.client_ca', flag: '--serve-client-ca', arg: 'PATH' },
  { key: 'serve.bearer', flag: '--serve-bearer', arg: 'REFERENCE', form: 'secret' },
  {
    key: 'observability.metrics_addr',
    flag: '--metrics-addr',
    aliases: ['--health-http'],
    arg: 'HOST:PORT',
    env: ['AGENT_METRICS_ADDR'],
  },
  { key: 'observability.health_file', flag: '--health-file', arg: 'PATH', env: ['AGENT_HEALTH_FILE'] },
  { key: 'observability.report_file', flag: '--report-file', arg: 'PATH', env: ['AGENT_REPORT_FILE'] },
  { key: 'observability.events_ring', flag: '--events-ring', arg: 'N', env: ['AGENT_EVENTS_RING'] },
  { key: 'observability.serve_events', env: ['AGENT_SERVE_EVENTS'] },
  { key: 'run_id', flag: '--run-id', arg: 'ID', env: ['AGENT_RUN_ID'] },
  { key: 'traceparent', flag: '--traceparent', arg: 'VALUE', env: ['AGENT_TRACEPARENT'] },
  {
    key: 'observability.log.level',
    flag: '--log-level',
    aliases: ['--level'],
    arg: 'LEVEL',
    env: ['AGENT_LOG_LEVEL'],
  },
  { key: 'observability.log.format', flag: '--log-format', arg: 'FORMAT', env: ['AGENT_LOG_FORMAT'] },
  { key: 'observability.log.content', flag: '--log-content', env: ['AGENT_LOG_CONTENT'] },
  { key: 'observability.log.aggregate', flag: '--aggregate-logs', env: ['AGENT_AGGREGATE_LOGS'] },
  { key: 'observability.log.only', flag: '--only', arg: 'HANDLE', repeat: true },
  { key: 'observability.inspect_child', flag: '--inspect-child', arg: 'HANDLE[:PORT]' },
  { key: 'cgroup.root', flag: '--cgroup', arg: 'auto|PATH', env: ['AGENT_CGROUP'] },
  {
    key: 'cgroup.memory_max',
    flag: '--cgroup-memory-max',
    arg: 'SIZE',
    env: ['AGENT_CGROUP_MEMORY_MAX'],
  },
  { key: 'cgroup.pids_max', flag: '--cgroup-pids-max', arg: 'N', env: ['AGENT_CGROUP_PIDS_MAX'] },
  { key: 'tls_ca', flag: '--tls-ca', arg: 'PATH', env: ['AGENT_TLS_CA'] },
  { key: 'allow_trifecta', flag: '--allow-trifecta', env: ['AGENT_ALLOW_TRIFECTA'] },
  { key: 'budget_exit_code', flag: '--budget-exit-code', arg: 'N', env: ['AGENT_BUDGET_EXIT_CODE'] },
  { key: 'watch_config', flag: '--watch-config', env: ['AGENT_WATCH_CONFIG'] },
];

/** A flag that is not a key: it adds to lists, names files, or prints and exits. */
export interface OtherFlag {
  readonly flag: string;
  readonly arg?: string;
  readonly env?: readonly string[];
  readonly repeat?: true;
  readonly help: string;
}

export const OTHER_FLAGS = [
  {
    flag: '--config',
    arg: 'PATH',
    env: ['AGENT_CONFIG'],
    repeat: true,
    help: 'Configuration file (YAML or JSON); later files merge over earlier ones, lists replace.',
  },
  { flag: '--mcp-tags', arg: 'NAME=TAG[,TAG]', repeat: true, help: 'Data-flow tags of a server.' },
  { flag: '--continue', arg: 'URI', repeat: true, help: 'Route changes of the URI to a session of its own.' },
  {
    flag: '--claim',
    arg: 'URI=SERVER[:tool|resource]',
    repeat: true,
    help: 'Claim the items of a route (or of a new one) at a server.',
  },
  { flag: '--capabilities', help: 'Print the capabilities manifest and exit.' },
  { flag: '--validate-config', help: 'Check the configuration, print it and exit.' },
  { flag: '--config-schema', help: 'Print the JSON Schema of the configuration and exit.' },
] as const satisfies readonly OtherFlag[];

/** Variables that are read but are no key's alone. */
export const OTHER_VARIABLES = [
  { name: 'AGENT_CONFIG', help: 'Configuration files, separated by commas, as with --config.' },
  {
    name: 'AGENT_MCP_CONFIG',
    help: 'File of MCP servers: a `servers` list as under `mcp`, or an `mcpServers` mapping.',
  },
  {
    name: 'AGENT_INTELLIGENCE_TOKEN_N',
    help: 'Credential of endpoint number N, counted from 1; with _FILE at the end, the file that holds it.',
  },
  { name: 'AGENT_POD_NAME', help: 'Instance name when agent.name is not set, and the ordinal of auto/N.' },
  {
    name: 'OTEL_EXPORTER_OTLP_ENDPOINT',
    help: 'Base URL of an OTLP receiver over HTTP; traces are sent there, in place of observability.otel.endpoint.',
  },
  { name: 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', help: 'The same for traces alone, as the whole URL.' },
  { name: 'AGENT_POD_UID', help: 'Identity: uid.' },
  { name: 'AGENT_POD_NAMESPACE', help: 'Identity: namespace.' },
  { name: 'AGENT_NODE_NAME', help: 'Identity: node.' },
] as const;
