import { AgentdError, errorMessage } from '../../protocol/errors.ts';
import type { ToolOutcome } from '../../protocol/frames.ts';
import { META } from '../../protocol/work-tools.ts';
import type { BrokeredCall, CallTool } from '../children/run.ts';
import type { Clock } from '../reactor/clock.ts';
import { contentField } from '../telemetry/content.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { childTraceparent, parseTraceparent, spanIdOf } from '../telemetry/trace.ts';
import { canonicalJson, IdempotencyKeys } from './idempotency.ts';
import type { CallResult, Peer, Peers } from './peers.ts';
import { cutText } from './tool-result.ts';

export interface ToolBrokerOptions {
  readonly peers: Peers;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly clock: Clock;
  readonly instance: string;
  /** Log arguments and results themselves instead of hash and length. */
  readonly logContent: boolean;
  /** A call has ended; the server was told `traceparent`. */
  readonly traced?: (call: BrokeredCall, traceparent: string, durationMs: number, failed: boolean) => void;
  /** Longest a server's calls may go without an answer or progress, ms; a run may allow less. */
  readonly timeoutOf?: (server: string) => number | undefined;
  /** Cap on the text and on the structured part of a result, bytes of UTF-8 each. Default 1 MiB. */
  readonly maxResultBytes?: number;
  /** How long a call waits for a server that is reconnecting, ms. Default 5 s. */
  readonly reconnectWaitMs?: number;
}

export interface ToolBroker {
  readonly call: CallTool;
  /** The run has ended: its counters are dropped. */
  forget(runId: string): void;
}

/**
 * Makes the tool calls of children on the supervisor's warm connections: stamps who calls and which
 * call it is, passes progress on, cancels at the server when the child is gone, bounds and counts.
 */
export function createToolBroker(options: ToolBrokerOptions): ToolBroker {
  const keys = new IdempotencyKeys();
  return {
    call: (call) => brokerCall(options, keys, call),
    forget: (runId) => keys.forget(runId),
  };
}

async function brokerCall(
  options: ToolBrokerOptions,
  keys: IdempotencyKeys,
  call: BrokeredCall,
): Promise<ToolOutcome> {
  const { server, tool } = call.descriptor;
  const log = options.log.as({ runId: call.runId, agentPath: call.agentPath });
  const started = options.clock.now();
  const args = canonicalJson(call.arguments);
  // A span of its own for each call, so that what the server does can be told from its other work.
  const traceparent = childTraceparent(call.traceparent);
  const trace = parseTraceparent(traceparent);
  const parent = spanIdOf(call.traceparent);
  const about = {
    server,
    tool,
    ...(trace === null ? {} : { trace_id: trace.traceId, span_id: trace.spanId }),
    ...(parent === null ? {} : { parent_span_id: parent }),
  };
  log.debug('tool.call', { ...about, arguments: contentField(args, options.logContent) });
  let outcome: ToolOutcome;
  try {
    outcome = await attempt(options, keys, call, args, traceparent);
  } catch (error) {
    // A promise of CallTool: a failure is an outcome.
    outcome = refused(`The call failed: ${errorMessage(error)}`);
  }
  const duration = options.clock.now() - started;
  const ok = String(!outcome.is_error);
  options.metrics.add('agent_tool_calls_total', { server, tool, ok });
  options.metrics.observe('agent_tool_call_duration_ms', duration, { server, tool });
  options.traced?.(call, traceparent, duration, outcome.is_error);
  log.info('tool.result', {
    ...about,
    ok: !outcome.is_error,
    dur_ms: duration,
    result: contentField(outcome.text, options.logContent),
  });
  return outcome;
}

async function attempt(
  options: ToolBrokerOptions,
  keys: IdempotencyKeys,
  call: BrokeredCall,
  canonicalArguments: string,
  traceparent: string,
): Promise<ToolOutcome> {
  const { server, tool } = call.descriptor;
  const peer = options.peers.get(server, call.runId);
  if (peer === undefined) return refused(`There is no tool server named ${server}.`);
  if (!(await reachable(options, peer, call))) {
    if (call.signal.aborted) return refused('The call was cancelled.');
    return refused(
      `Tool server ${server} is not connected at the moment; the call was not made. Try again later, or go on without ${tool}.`,
    );
  }
  if (!peer.toolNames.includes(tool)) {
    return refused(`Tool server ${server} does not offer ${tool} (any more). Use another tool.`);
  }
  const timeoutMs = Math.min(call.timeoutMs, options.timeoutOf?.(server) ?? call.timeoutMs);
  const issued = keys.issue(call.runId, server, tool, canonicalArguments);
  try {
    const result = await peer.callTool(tool, call.arguments, {
      timeoutMs,
      signal: call.signal,
      onProgress: (note) => call.progress(note),
      meta: {
        [META.RUN_ID]: call.runId,
        [META.INSTANCE]: options.instance,
        [META.IDEMPOTENCY_KEY]: issued.key,
        [META.TRACEPARENT]: traceparent,
      },
    });
    return bounded(result, options.maxResultBytes ?? 1024 * 1024);
  } catch (error) {
    const answered = error instanceof AgentdError && error.code === 'MCP_PROTOCOL';
    if (!answered) issued.unanswered();
    return refused(explain(error, server, tool));
  }
}

async function reachable(options: ToolBrokerOptions, peer: Peer, call: BrokeredCall): Promise<boolean> {
  if (call.signal.aborted) return false;
  if (peer.state === 'live') return true;
  return await peer.whenLive(Math.min(options.reconnectWaitMs ?? 5_000, call.timeoutMs), call.signal);
}

/** What went wrong, in words a model can act on. */
function explain(error: unknown, server: string, tool: string): string {
  const code = error instanceof AgentdError ? error.code : null;
  const reason = errorMessage(error);
  switch (code) {
    case 'MCP_CANCELLED':
      return 'The call was cancelled.';
    case 'MCP_TIMEOUT':
      return `The call was given up: ${reason}. It may still have taken effect; check before you repeat it.`;
    case 'MCP_UNAVAILABLE':
      return `The connection to ${server} broke during the call: ${reason}. It may still have taken effect; repeating ${tool} with the same arguments is recognised as the same call.`;
    default:
      return `The call was refused: ${reason}`;
  }
}

function refused(text: string): ToolOutcome {
  return { text, is_error: true };
}

function bounded(result: CallResult, maxBytes: number): ToolOutcome {
  const { structured, isError } = result;
  if (structured === undefined) return { text: cutText(result.text, maxBytes), is_error: isError };
  const json = JSON.stringify(structured);
  const text = cutText(result.text === '' ? json : result.text, maxBytes);
  if (Buffer.byteLength(json) <= maxBytes) return { text, is_error: isError, structured };
  const note = `[left out: the structured part of the result exceeds ${maxBytes} bytes]`;
  return { text: `${text}\n${note}`, is_error: isError };
}
