/** The model as the loop sees it: one conversation in, one answer out. */

/** Arguments as the model wrote them, once parsed; a model may write something that is no object. */
export type ParsedArguments =
  | { readonly valid: true; readonly value: Record<string, unknown> }
  | { readonly valid: false; readonly reason: string };

export interface ToolCall {
  /** Unique within the transcript. */
  readonly id: string;
  readonly name: string;
  readonly arguments: ParsedArguments;
}

export type Message =
  | { readonly role: 'user'; readonly text: string }
  | { readonly role: 'assistant'; readonly text: string; readonly calls: readonly ToolCall[] }
  | {
      readonly role: 'tool';
      readonly callId: string;
      readonly name: string;
      readonly text: string;
      readonly isError: boolean;
    };

export interface ModelTool {
  readonly name: string;
  readonly description: string;
  readonly input_schema: Record<string, unknown>;
}

/** What the task at hand is about; scripted turns choose by it. */
export interface TaskContext {
  /** 1 for a run; counts the wakes of a session. */
  readonly sequence: number;
  readonly uri: string;
  readonly server: string;
}

export interface ModelRequest {
  readonly system: string;
  readonly messages: readonly Message[];
  readonly tools: readonly ModelTool[];
  readonly task: TaskContext;
  /** What the budget has left; an upper bound for the answer, tokens. */
  readonly tokensLeft: number;
}

/** Null where the endpoint reports nothing: a count is never guessed. */
export interface TokenUsage {
  readonly tokensIn: number;
  readonly tokensOut: number;
}

/**
 * Why the model stopped. `end`: it is done. `cut_off`: it ran into a length limit, or said nothing.
 * `declined`: it, or a filter of its provider, will not answer.
 */
export type StopReason = 'end' | 'calls' | 'cut_off' | 'declined';

export interface ModelAnswer {
  readonly text: string;
  readonly calls: readonly ToolCall[];
  readonly stop: StopReason;
  readonly usage: TokenUsage | null;
  /** As the endpoint names it, or as it was asked for. */
  readonly model: string;
}

/** The closed set of the metric label `reason`. */
export type FailureReason = 'unreachable' | 'auth' | 'timeout' | '5xx' | 'other';

/** One request to one endpoint, answered or not. */
export interface CallReport {
  readonly endpoint: number;
  readonly durationMs: number;
  readonly usage: TokenUsage | null;
  readonly model: string;
  /** The span the endpoint was told of; absent where there is no endpoint to tell. */
  readonly spanId?: string | undefined;
  /** Null when it was answered. */
  readonly failure: { readonly reason: FailureReason; readonly message: string } | null;
}

export interface CompleteOptions {
  /** Aborted when the run is stopped. */
  readonly signal: AbortSignal;
  /** Called for every request made, retries included. */
  readonly onCall: (report: CallReport) => void;
  /**
   * Called when a request with a time limit of its own is sent, and every half minute while it is
   * in flight: such a wait is no silence. Nothing else counts as one.
   */
  readonly onWaiting: () => void;
}

export interface Model {
  /**
   * Asks for the next answer, with the retries and the failover of the endpoint list.
   *
   * @throws AgentdError INTELLIGENCE_UNREACHABLE, INTELLIGENCE_AUTH or INTELLIGENCE_REJECTED when no
   *   endpoint gives one; PLAYBOOK_ENDED
   */
  complete(request: ModelRequest, options: CompleteOptions): Promise<ModelAnswer>;
}

const SAMPLE_LENGTH = 200;

/** Parses arguments written as JSON text; empty text stands for no arguments. */
export function parseArguments(text: string): ParsedArguments {
  if (text.trim() === '') return { valid: true, value: {} };
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { valid: false, reason: `the arguments are not valid JSON: ${text.slice(0, SAMPLE_LENGTH)}` };
  }
  return argumentsOf(value);
}

/** Arguments that arrived as a JSON value. */
export function argumentsOf(value: unknown): ParsedArguments {
  if (value === undefined || value === null) return { valid: true, value: {} };
  if (isRecord(value)) return { valid: true, value };
  return {
    valid: false,
    reason: `the arguments must be a JSON object, not ${Array.isArray(value) ? 'an array' : typeof value}`,
  };
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
