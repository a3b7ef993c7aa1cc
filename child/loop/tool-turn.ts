import { createHash } from 'node:crypto';
import type { ToolOutcome } from '../../protocol/frames.ts';
import type { ModelTool, ToolCall } from '../model/model.ts';
import type { BrokerClient } from '../tools/broker-client.ts';
import { TASK_REFUSE } from '../tools/self-tools.ts';

/** Calls of one turn that run at the same time. */
export const MAX_PARALLEL_CALLS = 8;
/** Calls of one turn that are made at all; the rest get an error result. */
export const MAX_CALLS_PER_TURN = 64;
const NAMES_SHOWN = 40;

/** The tools of a run, by who answers them. */
export interface ToolSet {
  readonly brokered: readonly ModelTool[];
  readonly self: readonly ModelTool[];
}

/** A call that can be made, or the result it gets instead. */
export type PlannedCall =
  | {
      readonly kind: 'brokered' | 'self';
      readonly call: ToolCall;
      readonly arguments: Record<string, unknown>;
    }
  | { readonly kind: 'impossible'; readonly call: ToolCall; readonly outcome: ToolOutcome };

export interface TurnPlan {
  /** The reason of a `task_refuse` among the calls: nothing else of the turn is done then. */
  readonly refusal: string | null;
  readonly calls: readonly PlannedCall[];
  /** The same for the same calls with the same arguments; null when none can be made. */
  readonly signature: string | null;
}

/** Sorts the calls of one answer, without making any. */
export function planTurn(calls: readonly ToolCall[], tools: ToolSet): TurnPlan {
  const planned = calls.map((call, index): PlannedCall => {
    if (index >= MAX_CALLS_PER_TURN) {
      return impossible(call, `not done: at most ${MAX_CALLS_PER_TURN} calls can be made in one turn`);
    }
    const self = tools.self.some((tool) => tool.name === call.name);
    if (!self && !tools.brokered.some((tool) => tool.name === call.name)) {
      return impossible(
        call,
        `there is no tool ${JSON.stringify(call.name.slice(0, 100))}; ${listNames(tools)}`,
      );
    }
    if (!call.arguments.valid) return impossible(call, call.arguments.reason);
    return { kind: self ? 'self' : 'brokered', call, arguments: call.arguments.value };
  });
  const refuse = planned.find((entry) => entry.kind === 'self' && entry.call.name === TASK_REFUSE);
  const reason = refuse?.kind === 'self' ? refuse.arguments.reason : undefined;
  const possible = planned.filter((entry) => entry.kind !== 'impossible');
  return {
    refusal: refuse === undefined ? null : typeof reason === 'string' ? reason : 'no reason was given',
    calls: planned,
    signature: possible.length === 0 ? null : signatureOf(possible),
  };
}

export interface ExecuteOptions {
  readonly broker: BrokerClient;
  /** Longest a call may go without an answer or progress, ms. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  readonly observe: (planned: PlannedCall, outcome: ToolOutcome | null) => void;
}

/** Makes the calls of a turn, several at a time. Outcomes come in the order of the calls. */
export async function executeTurn(
  calls: readonly PlannedCall[],
  options: ExecuteOptions,
): Promise<readonly ToolOutcome[]> {
  const outcomes: ToolOutcome[] = [];
  const queue = calls.entries();
  const work = async (): Promise<void> => {
    // One iterator, shared: each worker takes the next call.
    for (const [index, planned] of queue) {
      options.observe(planned, null);
      const outcome = await execute(planned, options);
      options.observe(planned, outcome);
      outcomes[index] = outcome;
    }
  };
  await Promise.all(Array.from({ length: Math.min(MAX_PARALLEL_CALLS, calls.length) }, work));
  return outcomes;
}

function execute(planned: PlannedCall, options: ExecuteOptions): Promise<ToolOutcome> {
  const { broker, signal, timeoutMs } = options;
  switch (planned.kind) {
    case 'impossible':
      return Promise.resolve(planned.outcome);
    case 'self':
      return broker.callSelf(planned.call.name, planned.arguments, signal);
    case 'brokered':
      return broker.callTool(planned.call.name, planned.arguments, timeoutMs, signal);
  }
}

function impossible(call: ToolCall, text: string): PlannedCall {
  return { kind: 'impossible', call, outcome: { text, is_error: true } };
}

function listNames(tools: ToolSet): string {
  const names = [...tools.brokered, ...tools.self].map((tool) => tool.name);
  const more = names.length > NAMES_SHOWN ? ` and ${names.length - NAMES_SHOWN} more` : '';
  return `the tools are: ${names.slice(0, NAMES_SHOWN).join(', ')}${more}`;
}

/** Hashed when long, so that what is remembered of a turn has a bounded size. */
function signatureOf(calls: readonly PlannedCall[]): string {
  const text = calls
    .map(
      (planned) =>
        `${planned.call.name} ${planned.kind === 'impossible' ? '' : canonical(planned.arguments)}`,
    )
    .sort()
    .join('\n');
  return text.length <= 200 ? text : createHash('sha256').update(text).digest('hex');
}

/** JSON with the keys of every object in order. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, item: unknown) =>
    typeof item === 'object' && item !== null && !Array.isArray(item)
      ? Object.fromEntries(Object.entries(item).sort(([left], [right]) => (left < right ? -1 : 1)))
      : item,
  );
}
