import type { AgentRun } from '../children/agent-run.ts';
import type { BrokeredCall, RunOutcome } from '../children/run.ts';
import type { ReportedModelCall } from '../children/supervisor-options.ts';
import { childTraceparent } from './trace.ts';

/** A span that has ended, under the names of the GenAI semantic conventions. */
export interface EndedSpan {
  readonly name: string;
  readonly kind: 'internal' | 'client';
  /** Its own context. */
  readonly traceparent: string;
  /** The context it stands under; null at the root of a trace. */
  readonly parent: string | null;
  /** Ms since the Unix epoch. */
  readonly startedAt: number;
  readonly endedAt: number;
  readonly attributes: Readonly<Record<string, string | number | boolean>>;
  /** What went wrong, in a word; null when nothing did. */
  readonly error: string | null;
}

/** Takes spans. Never blocks and never throws: losing one changes nothing (invariant 10). */
export interface SpanSink {
  ended(span: EndedSpan): void;
  /** Waits until what was taken is sent, at the latest `budgetMs`. */
  flush(budgetMs: number): Promise<void>;
}

/** What the supervisor does for its agents, as spans: runs, their model calls and their tool calls. */
export class Traces {
  /**
   * @param now ms since the Unix epoch
   * @param agentName the instance, as the name of the agent
   */
  constructor(
    private readonly sink: SpanSink,
    private readonly now: () => number,
    private readonly agentName: string,
  ) {}

  run(run: AgentRun, outcome: RunOutcome): void {
    const { spec } = run;
    const { usage, status } = outcome;
    const failed = status !== 'completed' && status !== 'cancelled' && status !== 'refused';
    this.end(outcome.durationMs, {
      name: `invoke_agent ${this.agentName}`,
      kind: 'internal',
      traceparent: spec.traceparent,
      parent: spec.parentTraceparent ?? null,
      attributes: {
        'gen_ai.operation.name': 'invoke_agent',
        'gen_ai.provider.name': 'agentd',
        'gen_ai.agent.name': this.agentName,
        'gen_ai.agent.id': run.agentId,
        'gen_ai.usage.input_tokens': usage.tokens_in,
        'gen_ai.usage.output_tokens': usage.tokens_out,
        ...(spec.kind === 'session' ? { 'gen_ai.conversation.id': spec.runId } : {}),
        'agentd.run_id': spec.runId,
        'agentd.agent_path': run.path,
        'agentd.status': status,
        'agentd.steps': usage.steps,
        ...(spec.route === null ? {} : { 'agentd.route': spec.route }),
      },
      error: failed ? status : null,
    });
  }

  modelCall(run: AgentRun, call: ReportedModelCall): void {
    const own = childTraceparent(run.spec.traceparent);
    const model = run.model ?? call.model;
    this.end(call.durMs, {
      name: `chat ${model}`,
      kind: 'client',
      // The child has told the endpoint this very span.
      traceparent: call.spanId === undefined ? own : withSpan(own, call.spanId),
      parent: run.spec.traceparent,
      attributes: {
        'gen_ai.operation.name': 'chat',
        'gen_ai.request.model': model,
        ...(call.ok ? { 'gen_ai.response.model': call.model } : {}),
        'gen_ai.agent.id': run.agentId,
        'gen_ai.usage.input_tokens': call.tokensIn,
        'gen_ai.usage.output_tokens': call.tokensOut,
        'agentd.endpoint': call.endpoint,
        'agentd.run_id': run.spec.runId,
      },
      error: call.ok ? null : (call.reason ?? 'other'),
    });
  }

  /** @param traceparent the context the server was told */
  toolCall(call: BrokeredCall, traceparent: string, durationMs: number, failed: boolean): void {
    const { descriptor } = call;
    this.end(durationMs, {
      name: `execute_tool ${descriptor.tool}`,
      kind: 'internal',
      traceparent,
      parent: call.traceparent,
      attributes: {
        'gen_ai.operation.name': 'execute_tool',
        'gen_ai.tool.name': descriptor.tool,
        'gen_ai.tool.type': 'extension',
        'agentd.mcp.server': descriptor.server,
        'agentd.run_id': call.runId,
        'agentd.agent_path': call.agentPath,
      },
      error: failed ? 'tool_error' : null,
    });
  }

  flush(budgetMs: number): Promise<void> {
    return this.sink.flush(budgetMs);
  }

  private end(durationMs: number, span: Omit<EndedSpan, 'startedAt' | 'endedAt'>): void {
    const endedAt = this.now();
    this.sink.ended({ ...span, startedAt: endedAt - durationMs, endedAt });
  }
}

function withSpan(traceparent: string, spanId: string): string {
  const [version, traceId, , flags] = traceparent.split('-');
  return `${version}-${traceId}-${spanId}-${flags}`;
}
