import { z } from 'zod';
import { usage } from './frames.ts';
import { TERMINAL_STATUSES } from './terminal-status.ts';

/**
 * What the management surface serves and takes (contract, section 10). Documents may grow: a
 * reader ignores what it does not know. A secret or the address of an endpoint is in none of them.
 */

/** Operator methods, served to Management and to nobody else. */
export const OPERATOR_METHODS = [
  'a2a.Drain',
  'a2a.LameDuck',
  'a2a.Pause',
  'a2a.Resume',
  'a2a.Cancel',
] as const;
export type OperatorMethod = (typeof OPERATOR_METHODS)[number];

const handle = z.string().regex(/^\d+(\.\d+)*$/, { error: 'a handle looks like 0 or 0.2' });
const reason = z.string().max(1000);

export const operatorParams = {
  'a2a.Drain': z.object({ deadline_ms: z.number().int().min(0).max(86_400_000).optional() }),
  'a2a.LameDuck': z.object({ ready: z.boolean().optional() }),
  'a2a.Pause': z.object({}),
  'a2a.Resume': z.object({}),
  'a2a.Cancel': z.object({ handle, reason: reason.optional() }),
} as const satisfies Record<OperatorMethod, z.ZodObject>;

/** What an operator method answers: how the instance stands afterwards. */
export const operatorResult = z.looseObject({
  draining: z.boolean(),
  lame_duck: z.boolean(),
  paused: z.boolean(),
});
export type OperatorResult = z.infer<typeof operatorResult>;

/** `agent://status`. */
export const statusDocument = z.looseObject({
  instance: z.string(),
  run_id: z.string(),
  mode: z.enum(['once', 'loop', 'reactive', 'schedule']),
  shard: z.string().nullable(),
  phase: z.enum(['starting', 'running', 'draining']),
  ready: z.boolean(),
  /** Why not; empty exactly when ready. */
  reasons: z.array(z.string()),
  paused: z.boolean(),
  lame_duck: z.boolean(),
  draining: z.boolean(),
  started_at: z.iso.datetime(),
  uptime_ms: z.number().min(0),
  config_generation: z.number().int().min(0),
  /** The last attempt to change the configuration; null when there was none. */
  last_reload: z
    .looseObject({
      result: z.enum(['applied', 'rejected']),
      at: z.iso.datetime(),
      reason: z.string().nullable(),
    })
    .nullable()
    .optional(),
  active_subagents: z.number().int().min(0),
  pending_events: z.number().int().min(0),
  inflight_reactions: z.number().int().min(0),
  /** Null: unbounded. */
  budget_tokens_remaining: z.number().nullable(),
  /** The supervisor itself, its threads included and its children not. */
  process: z
    .looseObject({
      pid: z.number().int(),
      /** Per cent of one core, over the last moments. */
      cpu_percent: z.number().min(0),
      rss_bytes: z.number().min(0),
    })
    .optional(),
});
export type StatusDocument = z.infer<typeof statusDocument>;

/** `agent://subagent/{handle}`. */
export const subagentDocument = z.looseObject({
  handle,
  run_id: z.string(),
  /** Handle of the agent that asked for it; null for what the supervisor started. */
  parent: z.string().nullable(),
  status: z.enum([...TERMINAL_STATUSES, 'running']),
  route: z.string().nullable(),
  usage,
  has_usable_partial: z.boolean(),
  /** Why it did not end well. */
  error: z.object({ type: z.string(), message: z.string() }).optional(),
  /** Of its process while it runs: `waiting`, `running`, `paused`, `finishing` … */
  state: z.string().optional(),
  health: z.string().optional(),
  pid: z.number().int().optional(),
  age_ms: z.number().min(0).optional(),
  /** Last sample; absent before the first. */
  rss_bytes: z.number().min(0).optional(),
  /** Per cent of one core. */
  cpu_percent: z.number().min(0).optional(),
});
export type SubagentDocument = z.infer<typeof subagentDocument>;

/** `agent://subagent/{handle}/result`. */
export const subagentResultDocument = z.looseObject({
  handle,
  run_id: z.string(),
  status: z.enum(TERMINAL_STATUSES),
  result: z.string(),
  has_usable_partial: z.boolean(),
});
export type SubagentResultDocument = z.infer<typeof subagentResultDocument>;

/** `agent://session/{id}`. */
export const sessionDocument = z.looseObject({
  id: z.string(),
  run_id: z.string().nullable(),
  state: z.string(),
  /** Wakes answered so far. */
  turns: z.number().int().min(0),
});
export type SessionDocument = z.infer<typeof sessionDocument>;

/** `agent://inventory`: what this instance has and holds right now. */
export const inventoryDocument = z.looseObject({
  subagents: z.array(subagentDocument),
  sessions: z.array(sessionDocument),
  routes: z.array(
    z.looseObject({
      name: z.string(),
      match: z.string(),
      claim: z.boolean(),
      inflight: z.number().int().min(0),
    }),
  ),
  mcp_servers: z.array(
    z.looseObject({
      name: z.string(),
      state: z.string(),
      tools: z.number().int().min(0),
      tags: z.array(z.string()),
    }),
  ),
  subscriptions_active: z.number().int().min(0),
});
export type InventoryDocument = z.infer<typeof inventoryDocument>;

/** `agent://capacity` (contract, section 10). */
export const capacityDocument = z.looseObject({
  instance: z.string(),
  shard: z.string().nullable(),
  standby: z.boolean(),
  free_slots: z.number().int().min(0),
  active_subagents: z.number().int().min(0),
  warm_children: z.number().int().min(0),
  max_total_subagents: z.number().int().min(0),
  saturation: z.number().min(0).max(1),
  intelligence: z.looseObject({ warm: z.boolean(), healthy: z.union([z.boolean(), z.literal('unknown')]) }),
});
export type CapacityDocument = z.infer<typeof capacityDocument>;

const uri = z.string().min(1).max(8192);
const server = z.string().min(1).max(64);

/** Arguments of the management tools. */
export const managementArguments = {
  status: z.object({}),
  'subagent.spawn': z.object({
    instruction: z.string().min(1).describe('what the subagent is to do'),
    tools: z.array(z.string().min(1)).optional().describe('globs over server__tool; default: every tool'),
    output_contract: z.record(z.string(), z.unknown()).optional().describe('JSON Schema of the answer'),
    deadline_ms: z.number().int().min(1).optional().describe('shorter than the configured one'),
  }),
  'subagent.send': z.object({ handle, message: z.string().min(1) }),
  'subagent.cancel': z.object({ handle, reason: reason.optional() }),
  'subagent.status': z.object({ handle }),
  subscribe: z.object({ uri: uri.describe('exact URI or glob'), server }),
  unsubscribe: z.object({ uri, server }),
  'resource.read': z.object({ uri, server }),
  assign: z.object({
    uri: uri.describe('the item to work on'),
    server: server.describe('the server the item belongs to'),
  }),
} as const;
export type ManagementTool = keyof typeof managementArguments;
export type ArgumentsOf<T extends ManagementTool> = z.infer<(typeof managementArguments)[T]>;
