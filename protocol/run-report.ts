import { z } from 'zod';
import { TERMINAL_STATUSES } from './terminal-status.ts';

/** The run report (contract, section 6, report_schema "1.0"). Absent values are omitted, never null. */
export const runReport = z.object({
  report_schema: z.literal('1.0'),
  run_id: z.string(),
  instance: z.string().optional(),
  mode: z.enum(['once', 'loop', 'schedule']),
  status: z.enum(TERMINAL_STATUSES),
  exit_code: z.number().int(),
  has_usable_partial: z.boolean(),
  usage: z.object({
    tokens_in: z.number(),
    tokens_out: z.number(),
    steps: z.number(),
    subagents: z.number(),
  }),
  duration_ms: z.number(),
  started_at: z.iso.datetime(),
  ended_at: z.iso.datetime(),
  distillate_ref: z.literal('agent://subagent/0/result'),
  trace_id: z.string().optional(),
  refusals: z.object({
    trifecta: z.number(),
    rate: z.number(),
    budget: z.number(),
    depth: z.number(),
    mcp: z.number(),
  }),
});
export type RunReport = z.infer<typeof runReport>;
