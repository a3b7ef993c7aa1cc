import { AgentdError, errorMessage } from '../../protocol/errors.ts';
import type { ChildRequest, Response, ToolOutcome } from '../../protocol/frames.ts';
import type { AgentRun } from './agent-run.ts';
import type { CallTool } from './run.ts';

/** Requests one child may have open at a time. */
const MAX_OPEN = 64;

export interface CallDeskHooks {
  readonly callTool: CallTool;
  /** A self-tool, decided by the supervisor. Never rejects. */
  readonly selfCall: (
    run: AgentRun,
    name: string,
    args: Record<string, unknown>,
    signal: AbortSignal,
    progress: (note: string) => void,
  ) => Promise<ToolOutcome>;
  /** Sends an answer or a progress note. @throws AgentdError FRAME_TOO_LARGE */
  readonly send: (
    frame: Response | { method: 'request.progress'; params: { id: number; note: string } },
  ) => void;
  readonly opened: (id: number, timeoutMs: number) => void;
  readonly progressed: (id: number) => void;
  readonly closed: (id: number) => void;
  /** The run asked for a tool outside its scope. */
  readonly outOfScope: (name: string, run: AgentRun) => void;
}

/** Progress notes passed down to a child, at most one per call and interval, ms. */
const NOTE_INTERVAL_MS = 1_000;

/** Answers the requests of one child's run. Every open call ends with the child (its signal aborts). */
export class CallDesk {
  private readonly open = new Map<number, AbortController>();

  constructor(
    private readonly run: AgentRun,
    private readonly hooks: CallDeskHooks,
  ) {}

  get openCalls(): number {
    return this.open.size;
  }

  /** Takes a request; it is answered exactly once, unless it is cancelled first. */
  take(request: ChildRequest): void {
    const { id } = request;
    if (this.open.has(id)) {
      this.hooks.send({ id, error: { code: -32600, message: `request ${id} is already open` } });
      return;
    }
    if (this.open.size >= MAX_OPEN) {
      this.answer(id, failure(`no more than ${MAX_OPEN} calls can be open at once; wait for one to end`));
      return;
    }
    const controller = new AbortController();
    this.open.set(id, controller);
    this.dispatch(request, controller.signal).then(
      (outcome) => this.close(id, controller, outcome),
      (error: unknown) => this.close(id, controller, failure(errorMessage(error))),
    );
  }

  /** The child no longer waits for that one. */
  cancel(id: number): void {
    const controller = this.open.get(id);
    if (controller === undefined) return;
    this.open.delete(id);
    this.hooks.closed(id);
    controller.abort(new Error('the agent no longer waits for this call'));
  }

  /** The child is gone or being stopped: its calls are cancelled at their servers. */
  abortAll(): void {
    for (const id of [...this.open.keys()]) this.cancel(id);
  }

  private async dispatch(request: ChildRequest, signal: AbortSignal): Promise<ToolOutcome> {
    const { run } = this;
    const progress = this.progressOf(request.id);
    if (request.method === 'self.call') {
      this.hooks.opened(request.id, run.spec.limits.deadline_ms);
      return this.hooks.selfCall(run, request.params.name, request.params.arguments, signal, progress);
    }
    const { name, arguments: args, timeout_ms } = request.params;
    const timeoutMs = Math.min(timeout_ms, run.spec.limits.tool_timeout_ms);
    this.hooks.opened(request.id, timeoutMs);
    const descriptor = run.spec.tools.find((tool) => tool.name === name);
    if (descriptor === undefined) {
      this.hooks.outOfScope(name, run);
      return failure(`there is no tool ${name} for this run; it has: ${namesOf(run)}`);
    }
    return this.hooks.callTool({
      runId: run.rootRunId,
      agentPath: run.path,
      traceparent: run.spec.traceparent,
      descriptor,
      arguments: args,
      timeoutMs,
      signal,
      progress,
    });
  }

  private progressOf(id: number): (note: string) => void {
    let notedAt = Number.NEGATIVE_INFINITY;
    return (note) => {
      if (!this.open.has(id)) return;
      this.hooks.progressed(id);
      const now = performance.now();
      if (now - notedAt < NOTE_INTERVAL_MS) return;
      notedAt = now;
      this.hooks.send({ method: 'request.progress', params: { id, note: note.slice(0, 1_000) } });
    };
  }

  private close(id: number, controller: AbortController, outcome: ToolOutcome): void {
    if (this.open.get(id) !== controller) return;
    this.open.delete(id);
    this.hooks.closed(id);
    this.answer(id, outcome);
  }

  private answer(id: number, outcome: ToolOutcome): void {
    try {
      this.hooks.send({ id, result: outcome });
    } catch (error) {
      if (!(error instanceof AgentdError)) throw error;
      this.hooks.send({ id, result: failure(`the answer is too large to hand over: ${error.message}`) });
    }
  }
}

function namesOf(run: AgentRun): string {
  const names = run.spec.tools.map((tool) => tool.name);
  return names.length === 0 ? 'none' : names.slice(0, 32).join(', ');
}

function failure(text: string): ToolOutcome {
  return { text, is_error: true };
}
