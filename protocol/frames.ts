import { z } from 'zod';
import { TERMINAL_STATUSES } from './terminal-status.ts';

/**
 * Control frames between supervisor and child: JSON-RPC 2.0 objects, one a line, over the child's
 * stdin and stdout. A child can do nothing but send these; every one is validated and bounded
 * (invariant 7). Unknown keys are ignored, so that either side may grow.
 */

export const PROTOCOL_VERSION = 1;
/** Largest frame accepted or sent, in bytes of UTF-8, newline excluded. */
export const MAX_FRAME_BYTES = 16 * 1024 * 1024;

const jsonObject = z.record(z.string(), z.unknown());

export const toolDescriptor = z.object({
  /** The name the model sees: `server__tool`, letters, digits, `_` and `-`, at most 64. */
  name: z.string(),
  server: z.string(),
  tool: z.string(),
  description: z.string(),
  input_schema: jsonObject,
});
export type ToolDescriptor = z.infer<typeof toolDescriptor>;

/** Since the run began; over all wakes of a session. */
export const usage = z.object({
  tokens_in: z.number().min(0),
  tokens_out: z.number().min(0),
  steps: z.number().min(0),
  subagents: z.number().min(0),
});
export type Usage = z.infer<typeof usage>;
export const NO_USAGE: Usage = { tokens_in: 0, tokens_out: 0, steps: 0, subagents: 0 };

export const runLimits = z.object({
  max_steps: z.number().int().min(1),
  max_tokens: z.number().int().min(1),
  /** Wall-clock budget of the run from its start, ms. Always finite. */
  deadline_ms: z.number().min(1),
  /** Longest a single tool call may go without progress, ms. */
  tool_timeout_ms: z.number().min(1),
});
export type RunLimits = z.infer<typeof runLimits>;

export const modelBlock = z.object({
  /** Tried in order. `token` is the one secret a child may hold (invariant 9). */
  endpoints: z.array(z.object({ url: z.string(), token: z.string().optional() })).min(1),
  model: z.string().optional(),
  /** Per-request limit, ms. */
  timeout_ms: z.number().min(1),
  /** Attempts on one endpoint before the next is tried. */
  max_attempts: z.number().int().min(1),
  /** PEM file of extra certificate authorities. */
  tls_ca: z.string().optional(),
});
export type ModelBlock = z.infer<typeof modelBlock>;

/** What woke the run. */
export const runEvent = z.object({
  uri: z.string(),
  server: z.string(),
  /** Position in the session's wakes; 1 for a spawn route. */
  sequence: z.number().int().min(1),
});
export type RunEvent = z.infer<typeof runEvent>;

export const runStart = z.object({
  run_id: z.string(),
  agent_id: z.string(),
  agent_path: z.string(),
  /** `run`: one task, one result. `session`: waits for `session.wake` after each turn. */
  kind: z.enum(['run', 'session']),
  instruction: z.string(),
  event: runEvent.optional(),
  tools: z.array(toolDescriptor),
  /** Self-tools that answer in the supervisor: subagent_spawn, subagent_send, … */
  self_tools: z.array(z.string()),
  limits: runLimits,
  model: modelBlock,
  /** JSON Schema the final answer must satisfy. */
  output_contract: jsonObject.optional(),
  telemetry: z.object({
    instance: z.string(),
    traceparent: z.string(),
    log_level: z.string(),
    log_content: z.boolean(),
  }),
});
export type RunStart = z.infer<typeof runStart>;

export const runResult = z.object({
  run_id: z.string(),
  status: z.enum(TERMINAL_STATUSES),
  /** The distilled final answer; empty when there is none. */
  result: z.string(),
  has_usable_partial: z.boolean(),
  usage,
  error: z.object({ type: z.string(), message: z.string() }).optional(),
  /** No model endpoint could be used (exit code 4). */
  intelligence_failed: z.boolean().optional(),
});
export type RunResult = z.infer<typeof runResult>;

/** An endpoint that a waiting child holds a connection to; no credential, since nothing is sent on it. */
export const modelTarget = z.object({
  /** Scheme, host and port. */
  origin: z.string(),
  /** PEM file of extra certificate authorities. */
  tls_ca: z.string().optional(),
});
export type ModelTarget = z.infer<typeof modelTarget>;

/** Supervisor → child. */
export const supervisorNotification = z.discriminatedUnion('method', [
  z.object({ method: z.literal('run.start'), params: runStart }),
  /** To a child without a run: hold a connection to this endpoint open, and to no other. */
  z.object({ method: z.literal('model.hold'), params: modelTarget }),
  /** To a child without a run: hold no connection any more. */
  z.object({ method: z.literal('model.release'), params: z.object({}) }),
  /** A warm session: the changed URIs since the last wake; one `session.turn` answers it. */
  z.object({
    method: z.literal('session.wake'),
    params: z.object({
      run_id: z.string(),
      sequence: z.number(),
      uris: z.array(z.string()),
      messages: z.array(z.string()),
    }),
  }),
  z.object({ method: z.literal('run.cancel'), params: z.object({ run_id: z.string(), reason: z.string() }) }),
  z.object({
    method: z.literal('run.wind_down'),
    params: z.object({ run_id: z.string(), deadline_ms: z.number() }),
  }),
  z.object({ method: z.literal('run.pause'), params: z.object({ run_id: z.string() }) }),
  z.object({ method: z.literal('run.resume'), params: z.object({ run_id: z.string() }) }),
  /** Progress of one of the child's own requests, so that long calls are not mistaken for silence. */
  z.object({ method: z.literal('request.progress'), params: z.object({ id: z.number(), note: z.string() }) }),
]);
export type SupervisorNotification = z.infer<typeof supervisorNotification>;

/** Supervisor → child, answered with an empty result. */
export interface PingRequest {
  readonly id: number;
  readonly method: 'ping';
}

/** Child → supervisor, unanswered. */
export const childNotification = z.discriminatedUnion('method', [
  z.object({
    method: z.literal('ready'),
    params: z.object({ protocol_version: z.number(), pid: z.number() }),
  }),
  /** The connection asked for by `model.hold` has opened, or has been lost. */
  z.object({ method: z.literal('model.held'), params: z.object({ origin: z.string(), open: z.boolean() }) }),
  /**
   * What the no-progress detector and the roll-ups feed on. `step` is sent at each step; `model` when
   * a request to an endpoint is sent, every half minute while it is in flight within its time limit,
   * and, with `call`, when it has ended.
   */
  z.object({
    method: z.literal('run.progress'),
    params: z.object({
      run_id: z.string(),
      kind: z.enum(['start', 'step', 'model', 'paused', 'resumed']),
      usage,
      model: z.string().optional(),
      /** One model call, for the metrics of the tree. */
      call: z
        .object({
          dur_ms: z.number(),
          ok: z.boolean(),
          tokens_in: z.number(),
          tokens_out: z.number(),
          reason: z.enum(['unreachable', 'auth', 'timeout', '5xx', 'other']).optional(),
          /** Index into `model.endpoints`. */
          endpoint: z.number().int(),
          /** The span the endpoint was told of, 16 hexadecimal digits. */
          span_id: z
            .string()
            .regex(/^[0-9a-f]{16}$/)
            .optional(),
        })
        .optional(),
    }),
  }),
  z.object({ method: z.literal('run.result'), params: runResult }),
  /** The answer to one `session.wake`. */
  z.object({
    method: z.literal('session.turn'),
    params: z.object({
      run_id: z.string(),
      sequence: z.number(),
      status: z.enum(TERMINAL_STATUSES),
      result: z.string(),
      usage,
    }),
  }),
  z.object({
    method: z.literal('log'),
    params: z.object({
      level: z.enum(['trace', 'debug', 'info', 'warn', 'error']),
      event: z.string(),
      fields: jsonObject,
    }),
  }),
  /** The child no longer waits for one of its requests. */
  z.object({ method: z.literal('request.cancel'), params: z.object({ id: z.number() }) }),
]);
export type ChildNotification = z.infer<typeof childNotification>;

/** Child → supervisor, answered with a {@link ToolOutcome}. */
export const childRequest = z.discriminatedUnion('method', [
  z.object({
    id: z.number().int(),
    method: z.literal('tool.call'),
    params: z.object({
      run_id: z.string(),
      name: z.string(),
      arguments: jsonObject,
      timeout_ms: z.number().min(1),
    }),
  }),
  /** A self-tool: `subagent_spawn` and its kin, decided by the supervisor. */
  z.object({
    id: z.number().int(),
    method: z.literal('self.call'),
    params: z.object({ run_id: z.string(), name: z.string(), arguments: jsonObject }),
  }),
]);
export type ChildRequest = z.infer<typeof childRequest>;

/** What a tool call came to. A refusal or failure is `is_error`, with a text the model can act on. */
export const toolOutcome = z.object({
  text: z.string(),
  is_error: z.boolean(),
  structured: z.unknown().optional(),
});
export type ToolOutcome = z.infer<typeof toolOutcome>;

/** An answer, in either direction. */
export const response = z.union([
  z.object({ id: z.number().int(), result: z.unknown() }),
  z.object({ id: z.number().int(), error: z.object({ code: z.number(), message: z.string() }) }),
]);
export type Response = z.infer<typeof response>;

/** Everything a supervisor may read from a child. */
export type FrameFromChild =
  | { readonly type: 'notification'; readonly body: ChildNotification }
  | { readonly type: 'request'; readonly body: ChildRequest }
  | { readonly type: 'response'; readonly body: Response };

/** Everything a child may read from its supervisor. */
export type FrameFromSupervisor =
  | { readonly type: 'notification'; readonly body: SupervisorNotification }
  | { readonly type: 'request'; readonly body: PingRequest }
  | { readonly type: 'response'; readonly body: Response };

const pingRequest = z.object({ id: z.number().int(), method: z.literal('ping') });

/**
 * zod would compile each kind of frame when it first meets one: a millisecond a kind, at every start
 * of a process, to save some microseconds a frame.
 */
const INTERPRETED = { jitless: true };

/**
 * Validates one parsed line from a child.
 *
 * @throws z.ZodError when it is no frame of the protocol
 */
export function parseFrameFromChild(value: unknown): FrameFromChild {
  if (!hasMethod(value)) return { type: 'response', body: response.parse(value, INTERPRETED) };
  if (hasId(value)) return { type: 'request', body: childRequest.parse(value, INTERPRETED) };
  return { type: 'notification', body: childNotification.parse(value, INTERPRETED) };
}

/**
 * Validates one parsed line from the supervisor.
 *
 * @throws z.ZodError when it is no frame of the protocol
 */
export function parseFrameFromSupervisor(value: unknown): FrameFromSupervisor {
  if (!hasMethod(value)) return { type: 'response', body: response.parse(value, INTERPRETED) };
  if (hasId(value)) return { type: 'request', body: pingRequest.parse(value, INTERPRETED) };
  return { type: 'notification', body: supervisorNotification.parse(value, INTERPRETED) };
}

function hasMethod(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'method' in value;
}

function hasId(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'id' in value;
}
