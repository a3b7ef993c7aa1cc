import { z } from 'zod';

/** The telemetry line and its closed vocabulary (contract, section 5, events_schema "1.0"). */

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export const COMPONENTS = ['supervisor', 'agent', 'mcp', 'intel'] as const;
export type Component = (typeof COMPONENTS)[number];

export const EVENT_NAMES = [
  'proc.start',
  'proc.ready',
  'proc.shutdown',
  'proc.exit',
  'config.loaded',
  'config.warn',
  'config.invalid',
  'config.reloaded',
  'mcp.connect',
  'mcp.connect.fail',
  'mcp.disconnect',
  'trigger.armed',
  'trigger.fired',
  'subscribe',
  'unsubscribe',
  'resource.updated',
  'event.unrouted',
  'shard.skipped',
  'claim.offered',
  'claim.granted',
  'claim.lost',
  'claim.renewed',
  'claim.renew.fail',
  'claim.acked',
  'claim.released',
  'claim.expired',
  'drain.start',
  'drain.step',
  'drain.claim_release_failed',
  'drain.done',
  'subagent.spawn',
  'subagent.exit',
  'subagent.signal',
  'subagent.stuck',
  'subagent.restart',
  'subagent.orphan',
  'limit.exceeded',
  'loop.start',
  'loop.step',
  'loop.final',
  'loop.error',
  'intel.call',
  'intel.result',
  'tool.call',
  'tool.result',
  'report.written',
  'report.write.fail',
] as const;
export type EventName = (typeof EVENT_NAMES)[number];

/** The agent id of the supervisor itself. */
export const SUPERVISOR_AGENT_ID = 'sup';

export const eventLine = z.looseObject({
  ts: z.iso.datetime().describe('RFC 3339, UTC, milliseconds'),
  level: z.enum(LOG_LEVELS),
  event: z.enum(EVENT_NAMES),
  run_id: z.string(),
  agent_id: z.string(),
  agent_path: z.string().regex(/^\d+(\.\d+)*$/),
  comp: z.enum(COMPONENTS),
  pid: z.number().int().min(1),
  trace_id: z.string().optional(),
  span_id: z.string().optional(),
  parent_span_id: z.string().optional(),
  dur_ms: z.number().min(0).optional(),
  err: z.object({ type: z.string(), message: z.string() }).optional(),
  msg: z.string().optional(),
});
export type EventLine = z.infer<typeof eventLine>;

/** `agent://events`. */
export const eventsPage = z.object({
  events_schema: z.string(),
  oldest_seq: z.number(),
  newest_seq: z.number(),
  dropped: z.number(),
  events: z.array(eventLine.and(z.object({ seq: z.number() }))),
  /** The page ended early: read on after the last line of it. */
  more: z.boolean().optional(),
});

/** Keys no caller may overwrite. */
export const CANONICAL_FIELDS: ReadonlySet<string> = new Set([
  'ts',
  'level',
  'event',
  'run_id',
  'agent_id',
  'agent_path',
  'comp',
  'pid',
  'seq',
]);
