import { z } from 'zod';

/**
 * The capabilities manifest (contract, section 7): what `agentd --capabilities` prints and
 * `agent://capabilities` serves. It never holds an address of an endpoint, a URL with credentials or
 * a token. Off is `false` for management, metrics and a2a, absent for claim and null for shard.
 */
const surfaces = z.object({
  management: z.union([z.literal(false), z.string()]),
  operator_tools: z.array(z.enum(['a2a.Drain', 'a2a.LameDuck', 'a2a.Pause', 'a2a.Resume', 'a2a.Cancel'])),
  a2a: z.union([
    z.literal(false),
    z.object({ version: z.string(), streaming: z.boolean(), methods: z.array(z.string()) }),
  ]),
  metrics: z.union([z.literal(false), z.string()]),
  metrics_schema: z.string(),
  report_schema: z.string(),
  events_schema: z.string(),
  exit_codes: z.string(),
  events: z.boolean(),
  hot_reload: z.boolean(),
  config_validate: z.boolean(),
  config_schema: z.boolean(),
  intelligence: z.boolean(),
  cluster: z.boolean(),
  standby: z.boolean(),
  shard: z
    .string()
    .regex(/^\d+\/\d+$/)
    .nullable(),
  claim: z.object({ styles: z.array(z.enum(['tool', 'resource'])) }).optional(),
});

export const capabilitiesManifest = z.object({
  contract_version: z.string(),
  agent_version: z.string(),
  build_features: z.array(z.string()),
  identity: z.object({
    run_id: z.string(),
    instance: z.string().nullable(),
    uid: z.string().nullable(),
    node: z.string().nullable(),
    namespace: z.string().nullable(),
  }),
  mode: z.enum(['once', 'loop', 'reactive', 'schedule']),
  model: z.string().nullable(),
  intelligence: z.object({
    transport: z.literal('https').nullable(),
    /** How many are configured; never where they are. */
    endpoints: z.number().int().min(0),
    healthy: z.union([z.boolean(), z.literal('unknown')]),
  }),
  intelligence_summary: z.object({ toolmode: z.string() }),
  mcp_servers: z.array(z.object({ name: z.string(), tags: z.array(z.string()) })),
  a2a_peers: z.array(z.object({ name: z.string(), transport: z.string() })),
  limits: z.object({
    max_depth: z.number(),
    max_children: z.number(),
    max_total_subagents: z.number(),
    max_steps: z.number(),
    max_tokens: z.number(),
    tree_token_budget: z.number(),
    deadline_ms: z.number(),
    drain_timeout_ms: z.number(),
  }),
  exec_enabled: z.boolean(),
  allow_trifecta: z.boolean(),
  surfaces,
});
export type CapabilitiesManifest = z.infer<typeof capabilitiesManifest>;
