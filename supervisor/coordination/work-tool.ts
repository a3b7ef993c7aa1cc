import { createHash } from 'node:crypto';
import type { z } from 'zod';
import { AgentdError } from '../../protocol/errors.ts';
import { META } from '../../protocol/work-tools.ts';
import type { Ledger } from './ledger.ts';

/** Who called, as far as the ledger cares. */
export interface Caller {
  /** Who holds what is claimed. Settling demands the same. */
  readonly holder: string;
  /** The claim key of the call, when it carries one. */
  readonly claimKey: string | null;
}

/** How a call ended, for the metrics; a closed set. */
export type CallOutcome = 'ok' | 'lost' | 'refused' | 'error';

export interface ToolAnswer {
  readonly outcome: CallOutcome;
  readonly result: Record<string, unknown>;
}

/** One work.* tool. */
export interface WorkTool<Schema extends z.ZodType = z.ZodType> {
  readonly name: string;
  readonly description: string;
  readonly input: Schema;
  /** Called with arguments that passed `input`. */
  readonly run: (ledger: Ledger, args: z.infer<Schema>, caller: Caller) => Promise<ToolAnswer>;
}

/** Keeps the argument type of each tool while the list of them forgets it. */
export function workTool<Schema extends z.ZodType>(tool: WorkTool<Schema>): BoundTool {
  return {
    name: tool.name,
    description: tool.description,
    input: tool.input,
    call: async (ledger, args, caller) => {
      const parsed = tool.input.safeParse(args);
      if (!parsed.success) throw badArguments(tool.name, parsed.error);
      return await tool.run(ledger, parsed.data, caller);
    },
  };
}

/** A tool that checks its own arguments. */
export interface BoundTool {
  readonly name: string;
  readonly description: string;
  readonly input: z.ZodType;
  /** @throws AgentdError WORK_ARGUMENTS_INVALID, or what the ledger throws */
  readonly call: (ledger: Ledger, args: unknown, caller: Caller) => Promise<ToolAnswer>;
}

function badArguments(tool: string, error: z.ZodError): AgentdError {
  const first = error.issues[0];
  const where = first === undefined || first.path.length === 0 ? '' : `${first.path.join('.')}: `;
  return new AgentdError(
    'WORK_ARGUMENTS_INVALID',
    `${tool}: ${where}${first?.message ?? 'invalid arguments'}`,
  );
}

/** Longest name of an instance and longest claim key, characters. */
const MAX_TEXT = 512;

/** The lookup key of an item: the claim key, else the item, shortened to a digest where it is long. */
export function keyOf(claimKey: string | null, item: string): string {
  if (claimKey !== null) return claimKey;
  if (item.length <= MAX_TEXT) return item;
  return `sha256:${createHash('sha256').update(item).digest('hex')}`;
}

/**
 * Reads the caller from a call's `_meta`. Without `agent/instance` the session is the holder, so
 * that two anonymous clients can never be taken for one another.
 *
 * @throws AgentdError WORK_ARGUMENTS_INVALID
 */
export function callerOf(meta: Readonly<Record<string, unknown>> | undefined, sessionId: string): Caller {
  return {
    holder: text(meta, META.INSTANCE) ?? `session:${sessionId}`,
    claimKey: text(meta, META.CLAIM_KEY),
  };
}

function text(meta: Readonly<Record<string, unknown>> | undefined, key: string): string | null {
  const value = meta?.[key];
  if (value === undefined) return null;
  if (typeof value === 'string' && value !== '' && value.length <= MAX_TEXT && !value.includes('\0')) {
    return value;
  }
  throw new AgentdError(
    'WORK_ARGUMENTS_INVALID',
    `_meta["${key}"] must be a string of 1 to ${MAX_TEXT} characters without NUL`,
  );
}
