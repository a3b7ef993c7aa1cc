import { z } from 'zod';
import { LOG_LEVELS } from '../../protocol/event-line.ts';
import {
  bytes,
  choice,
  count,
  duration,
  flag,
  fraction,
  jsonObject,
  list,
  mapping,
  secret,
  text,
  textOrSecrets,
} from './schema-types.ts';

/**
 * The configuration document: what a file may say, and what flags and variables say in its place.
 * Closed: an unknown key is an error. docs/configuration.md and `--config-schema` are made from it.
 */

const NAME_PATTERN = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?$/;

function serverName() {
  return text()
    .regex(/^(?!.*__)[A-Za-z0-9_-]{1,64}$/, {
      error: 'a server name has 1 to 64 letters, digits, _ or -, and no __',
    })
    .describe('Name of the server in routes, subscriptions, tools and metrics.');
}

const agent = mapping({
  name: text()
    .regex(NAME_PATTERN, { error: 'an instance name has letters, digits, ".", "_" and "-", at most 64' })
    .optional()
    .describe('Instance name. Default: AGENT_POD_NAME, then HOSTNAME, then "agentd".'),
  instruction: text().optional().describe('What the agent is to do.'),
  instruction_file: text().optional().describe('File that holds the instruction.'),
  output_contract: jsonObject().optional().describe('JSON Schema the final answer must satisfy.'),
}).describe('The agent itself.');

const endpoint = z.union(
  [
    text(),
    mapping({ url: text().describe('URL.'), token: secret().optional().describe('Its own credential.') }),
  ],
  { error: 'expected a URL, or a mapping with url and token' },
);

const intelligence = mapping({
  endpoints: list(endpoint)
    .default([])
    .describe('Model endpoints in order of preference: https://…, http:// on loopback, or script:….'),
  model: text().optional().describe('Model name sent to the endpoint.'),
  token: secret().optional().describe('Credential of every endpoint that has none of its own.'),
  timeout: duration(1).prefault('120s').describe('Longest a model call may take.'),
  max_attempts: count(1, 20).prefault(4).describe('Attempts of one model call over all endpoints.'),
}).describe('Where the model runs.');

const server = mapping({
  name: serverName(),
  endpoint: text()
    .optional()
    .describe('URL of a Streamable HTTP server (https://, or http:// on loopback), or stdio:COMMAND.'),
  command: list(z.string({ error: 'expected text' }))
    .min(1, { error: 'must name a program' })
    .optional()
    .describe('Program and arguments of a stdio server; no shell.'),
  env: textOrSecrets().default({}).describe('Environment of a stdio server.'),
  cwd: text().optional().describe('Working directory of a stdio server.'),
  headers: textOrSecrets().default({}).describe('HTTP headers sent to the server.'),
  tags: list(choice(['untrusted_input', 'sensitive', 'egress']))
    .default([])
    .describe('Data-flow tags for the Rule of Two.'),
  required: flag().prefault(true).describe('Whether the supervisor refuses to start without it (exit 6).'),
  timeout: duration(1).prefault('60s').describe('Longest a call may go without an answer or progress.'),
});

const subscription = z.union(
  [
    text(),
    mapping({
      server: serverName().optional(),
      uri: text().describe('Exact URI or glob.'),
    }),
  ],
  { error: 'expected [server:]uri, or a mapping with server and uri' },
);

const shardKey = z.union(
  [
    z.literal('uri'),
    mapping({ segment: text().describe('Name of the segment.'), template: text().describe('URI template.') }),
    mapping({
      regex: text().describe('Regular expression over the URI.'),
      group: z.union([z.string(), z.int()]).default(1).describe('Capture group.'),
    }),
    mapping({ metadata: text().describe('JSON pointer into the resource metadata.') }),
  ],
  { error: 'expected uri, or a mapping with segment and template, regex and group, or metadata' },
);

const claim = mapping({
  server: serverName().describe('Server that grants the lease.'),
  style: choice(['tool', 'resource']).default('tool').describe('How the lease is taken.'),
  ttl: duration(100).optional().describe('Lease time. Default: claim.ttl.'),
  renew_fraction: fraction().optional().describe('Default: claim.renew_fraction.'),
  key: text()
    .default('run_id')
    .describe(
      'What is claimed: run_id, item, or a template over {{uri}}, {{route}}, {{server}}, {{last_modified}}, {{size}}.',
    ),
});

export const routeSchema = mapping({
  name: text().optional().describe('Stable name, part of the claim key. Default: the match.'),
  match: text().describe('Exact URI or glob.'),
  server: serverName().optional().describe('Take updates of this server only.'),
  disposition: choice(['spawn', 'continue']).default('spawn').describe('A new run, or a turn of a session.'),
  session: text().optional().describe('Session of a continue route. Default: the route name.'),
  claim: claim.optional().describe('Own the item before acting on it.'),
  instruction: text().optional().describe("Default: the agent's instruction."),
  instruction_file: text().optional().describe('File that holds the instruction of the route.'),
  output_contract: jsonObject().optional().describe('JSON Schema the answer must satisfy.'),
  shard_key: shardKey.default('uri').describe('What decides the shard of an item.'),
  debounce: duration().prefault('250ms').describe('Wait this long for further updates of a URI.'),
  max_inflight: count(1, 4096).prefault(4).describe('Reactions of this route at once.'),
  queue_cap: count(1, 1_000_000).optional().describe('Default: distinct watched URIs, at least 16.'),
  overflow: choice(['coalesce', 'drop_oldest', 'drop_newest', 'block'])
    .default('coalesce')
    .describe('What happens when the queue is full.'),
  tools: list(text())
    .optional()
    .describe('Globs over server__tool the run may call. Default: all but work.*'),
});

const limits = mapping({
  max_steps: count(1).prefault(50).describe('Steps of one run.'),
  max_tokens: count(1).prefault(200_000).describe('Tokens of one run.'),
  max_depth: count(1, 64).prefault(4).describe('Depth of the subagent tree.'),
  max_children: count(1, 4096).prefault(8).describe('Children of one subagent.'),
  max_total_subagents: count(1, 4096).prefault(64).describe('Subagents at once.'),
  deadline: duration(1).prefault('600s').describe('Wall-clock limit of one run.'),
  tree_tokens: count(1).prefault(2_000_000).describe('Tokens of one subagent tree.'),
  budget_tokens: count(1).optional().describe('Tokens over the life of the process. Default: unbounded.'),
  no_progress: duration(1).prefault('120s').describe('Longest a run may show no progress.'),
  warm_children: count(0, 1024)
    .optional()
    .describe('Idle children kept ready. Default: 1 reactive, 0 otherwise.'),
  child_memory_max: bytes().optional().describe('Resident memory at which a child is stopped.'),
}).describe('Limits the supervisor enforces.');

const log = mapping({
  level: choice(LOG_LEVELS).default('info').describe('Least severe level that is written.'),
  format: choice(['json', 'text']).optional().describe('Default: text on a terminal, else json.'),
  content: flag().prefault(false).describe('Log prompts, arguments and results instead of hash and length.'),
  aggregate: flag()
    .prefault(false)
    .describe('Log what children write on standard error in full, line by line, instead of as a sample.'),
  only: z
    .array(z.string().regex(/^\d+(\.\d+)*$/, { error: 'expected an agent path such as 0.2' }))
    .prefault([])
    .describe('Write only the lines of these agents, by path, and of the agents below them.'),
}).describe('Telemetry lines on standard error.');

const observability = mapping({
  metrics_addr: text().optional().describe('HOST:PORT of /metrics, /healthz and /readyz.'),
  health_file: text().optional().describe('File that holds the health verdict.'),
  report_file: text().optional().describe('File the run report is written to.'),
  events_ring: count(1, 1_048_576).prefault(1024).describe('Events kept for agent://events.'),
  serve_events: flag().prefault(true).describe('Serve agent://events on the management surface.'),
  inspect_child: text()
    .regex(/^\d+(\.\d+)*(:\d{1,5})?$/, { error: 'expected an agent path and a port, such as 0.2:9229' })
    .optional()
    .describe(
      'Agent to open the Node inspector in, on loopback, with its deadlines suspended. For debugging.',
    ),
  log: log.prefault({}),
  otel: mapping({
    endpoint: text()
      .regex(/^https?:\/\/[^/]/, { error: 'expected a URL, http:// or https://' })
      .describe('Base URL of an OTLP receiver over HTTP; traces are sent to its /v1/traces.'),
  })
    .optional()
    .describe('Export of traces.'),
}).describe('What the supervisor tells about itself.');

export const configSchema = mapping({
  agent: agent.prefault({}),
  mode: choice(['once', 'loop', 'reactive', 'schedule'])
    .optional()
    .describe('When the process ends. Default: once; reactive under `agentd supervise`.'),
  run_id: text()
    .regex(/^[A-Za-z0-9._:-]{1,128}$/, {
      error: 'a run id has 1 to 128 letters, digits, ".", "_", ":" or "-"',
    })
    .optional()
    .describe('Id of the run. Default: minted.'),
  traceparent: text()
    .optional()
    .describe('W3C trace context this process belongs to. Default, and in place of an invalid one: minted.'),
  intelligence: intelligence.prefault({}),
  mcp: mapping({ servers: list(server).default([]).describe('MCP servers.') })
    .prefault({})
    .describe('Sources, tools and coordination.'),
  subscribe: list(subscription)
    .default([])
    .describe('What to watch, as [server:]uri. Routes nothing here feeds are watched themselves.'),
  routes: list(routeSchema).default([]).describe('What to do with a change; first the most specific match.'),
  claim: mapping({
    ttl: duration(100).prefault('30s').describe('Lease time.'),
    renew_fraction: fraction().prefault(0.33).describe('Renew after this fraction of the lease time.'),
  })
    .prefault({})
    .describe('Defaults of claim routes.'),
  shard: mapping({
    index: text()
      .default('0/1')
      .describe('K/N: this is shard K of N. auto/N: K is the trailing number of the pod or unit name.'),
    timer: choice(['shard0', 'keyed']).default('shard0').describe('Which shard the clock ticks on.'),
  })
    .prefault({})
    .describe('Part of the items that are ours. `shard: K/N` is short for `shard: {index: K/N}`.'),
  standby: mapping({
    enabled: flag().prefault(false).describe('Wait for assignments instead of events.'),
    assign_from: text().optional().describe('server:uri that assigns.'),
    warm_intelligence: flag()
      .optional()
      .describe(
        'Idle children hold a connection to the model endpoint open. Default: true in standby, else false.',
      ),
  })
    .prefault({})
    .describe('Warm spare capacity.'),
  schedule: mapping({
    interval: duration(1).optional().describe('Time between ticks.'),
    cron: text().optional().describe('Five fields, UTC.'),
  })
    .prefault({})
    .describe('The clock.'),
  limits: limits.prefault({}),
  lifecycle: mapping({
    drain_timeout: duration().prefault('25s').describe('Whole time of a drain.'),
    pod_grace: duration(1).optional().describe('Time the platform grants between SIGTERM and SIGKILL.'),
  })
    .prefault({})
    .describe('Start and end of the process.'),
  serve: mapping({
    mcp: text().optional().describe('URL of the management surface.'),
    cert: text().optional().describe('PEM certificate.'),
    key: text().optional().describe('PEM key.'),
    client_ca: text().optional().describe('PEM authority of client certificates.'),
    bearer: secret().optional().describe('Bearer token that grants Management.'),
  })
    .prefault({})
    .describe('The management surface.'),
  observability: observability.prefault({}),
  cgroup: mapping({
    root: text().optional().describe('auto, or the path of a delegated cgroup v2 folder.'),
    memory_max: bytes().optional().describe('memory.max of each child.'),
    pids_max: count(1).optional().describe('pids.max of each child.'),
  })
    .prefault({})
    .describe('Resource limits of children by the kernel.'),
  budget_exit_code: count(0, 255).optional().describe('Replaces the exit codes 3 and 7.'),
  allow_trifecta: flag()
    .prefault(false)
    .describe('Allow one run untrusted input, sensitive data and egress together.'),
  tls_ca: text().optional().describe('PEM file of further certificate authorities.'),
  watch_config: flag().prefault(false).describe('Reload when a configuration file changes.'),
});

export type ConfigDocument = z.output<typeof configSchema>;
export type RouteDocument = ConfigDocument['routes'][number];
export type ServerDocument = ConfigDocument['mcp']['servers'][number];
