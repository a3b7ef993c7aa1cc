import { AgentdError, errorMessage } from '../../protocol/errors.ts';
import { type ChildRequest, type Response, type ToolOutcome, toolOutcome } from '../../protocol/frames.ts';
import { startTimer } from '../loop/long-timer.ts';

/** What the broker client sends with. */
export interface RequestSink {
  request(message: ChildRequest): void;
  cancelRequest(id: number): void;
}

interface Pending {
  settle(outcome: ToolOutcome): void;
  progress(): void;
}

/**
 * Calls tools by asking the supervisor, which holds the connections and checks the scope. A call
 * never rejects: what goes wrong becomes an error result the model can act on.
 */
export class BrokerClient {
  private nextId = 1;
  private readonly pending = new Map<number, Pending>();

  constructor(
    private readonly runId: string,
    private readonly sink: RequestSink,
  ) {}

  /** Requests that are not answered yet. */
  get inFlight(): number {
    return this.pending.size;
  }

  /** @param timeoutMs longest without an answer or progress, ms */
  callTool(
    name: string,
    args: Record<string, unknown>,
    timeoutMs: number,
    signal: AbortSignal,
  ): Promise<ToolOutcome> {
    return this.send(name, timeoutMs, signal, (id) => ({
      id,
      method: 'tool.call',
      params: { run_id: this.runId, name, arguments: args, timeout_ms: timeoutMs },
    }));
  }

  /** A self-tool may last as long as a subagent: the deadline of the run bounds it, through `signal`. */
  callSelf(name: string, args: Record<string, unknown>, signal: AbortSignal): Promise<ToolOutcome> {
    return this.send(name, null, signal, (id) => ({
      id,
      method: 'self.call',
      params: { run_id: this.runId, name, arguments: args },
    }));
  }

  /** An answer of the supervisor. One to a request that is gone is ignored. */
  answer(message: Response): void {
    const entry = this.pending.get(message.id);
    if (entry === undefined) return;
    if ('error' in message) {
      entry.settle(failure(message.error.message));
      return;
    }
    const outcome = toolOutcome.safeParse(message.result);
    entry.settle(outcome.success ? outcome.data : failure('the supervisor sent no tool result'));
  }

  /** The request is being worked on: its timer starts again. */
  progress(id: number): void {
    this.pending.get(id)?.progress();
  }

  private send(
    name: string,
    timeoutMs: number | null,
    signal: AbortSignal,
    build: (id: number) => ChildRequest,
  ): Promise<ToolOutcome> {
    if (signal.aborted) return Promise.resolve(failure('the run was stopped'));
    const id = this.nextId++;
    return new Promise((resolve) => {
      let stopTimer = (): void => undefined;
      const settle = (outcome: ToolOutcome): void => {
        stopTimer();
        signal.removeEventListener('abort', onAbort);
        this.pending.delete(id);
        resolve(outcome);
      };
      const giveUp = (reason: string): void => {
        this.sink.cancelRequest(id);
        settle(failure(reason));
      };
      const onAbort = (): void => giveUp('the run was stopped');
      const arm = (): void => {
        stopTimer();
        if (timeoutMs === null) return;
        stopTimer = startTimer(timeoutMs, () =>
          giveUp(
            `${name} gave no answer and no sign of progress for ${timeoutMs} ms; the call was cancelled`,
          ),
        );
      };
      this.pending.set(id, { settle, progress: arm });
      signal.addEventListener('abort', onAbort, { once: true });
      arm();
      try {
        this.sink.request(build(id));
      } catch (error) {
        const tooLarge = error instanceof AgentdError && error.code === 'FRAME_TOO_LARGE';
        settle(failure(tooLarge ? `the arguments of ${name} are too large` : errorMessage(error)));
      }
    });
  }
}

function failure(text: string): ToolOutcome {
  return { text, is_error: true };
}
