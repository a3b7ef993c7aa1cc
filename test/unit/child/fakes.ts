import { runTask, type TaskEnd } from '../../../child/loop/agent-loop.ts';
import { Budget } from '../../../child/loop/budget.ts';
import { RunControl } from '../../../child/loop/run-control.ts';
import { Transcript } from '../../../child/loop/transcript.ts';
import type {
  CompleteOptions,
  Model,
  ModelAnswer,
  ModelRequest,
  ToolCall,
} from '../../../child/model/model.ts';
import { Reporter } from '../../../child/report.ts';
import { BrokerClient } from '../../../child/tools/broker-client.ts';
import { selfTools } from '../../../child/tools/self-tools.ts';
import type { ChildNotification, ChildRequest, RunStart, ToolOutcome } from '../../../protocol/frames.ts';
import { compileOutputContract } from '../../../protocol/output-contract.ts';

/** One answer of the fake model; a function sees the request and may take its time. */
export type FakeTurn =
  | ModelAnswer
  | ((request: ModelRequest, options: CompleteOptions) => ModelAnswer | Promise<ModelAnswer>);

export function says(text: string, more: Partial<ModelAnswer> = {}): ModelAnswer {
  return { text, calls: [], stop: text === '' ? 'cut_off' : 'end', usage: null, model: 'fake', ...more };
}

export function calls(...names: (string | ToolCall)[]): ModelAnswer {
  return {
    text: '',
    stop: 'calls',
    usage: null,
    model: 'fake',
    calls: names.map((entry) =>
      typeof entry === 'string' ? { id: '', name: entry, arguments: { valid: true, value: {} } } : entry,
    ),
  };
}

export function toolCall(name: string, args: Record<string, unknown>, id = ''): ToolCall {
  return { id, name, arguments: { valid: true, value: args } };
}

export interface LoopSetup {
  readonly turns: readonly FakeTurn[];
  readonly limits?: Partial<RunStart['limits']>;
  readonly contract?: Record<string, unknown>;
  readonly selfToolNames?: readonly string[];
  /** Answers a request; undefined leaves it open. */
  readonly answer?: (request: ChildRequest) => ToolOutcome | undefined;
}

/** The loop on a fake model and a fake broker, with everything it said and asked. */
export class LoopBench {
  readonly control = new RunControl();
  readonly transcript = new Transcript();
  readonly sent: ChildNotification[] = [];
  readonly requests: ChildRequest[] = [];
  readonly asked: ModelRequest[] = [];
  readonly broker: BrokerClient;
  readonly budget: Budget;
  now = 0;
  private played = 0;

  constructor(private readonly setup: LoopSetup) {
    this.broker = new BrokerClient('run-1', {
      request: (message) => {
        this.requests.push(message);
        const outcome = (setup.answer ?? (() => ({ text: 'ok', is_error: false })))(message);
        if (outcome !== undefined)
          queueMicrotask(() => this.broker.answer({ id: message.id, result: outcome }));
      },
      cancelRequest: (id) => this.sent.push({ method: 'request.cancel', params: { id } }),
    });
    const limits = { max_steps: 50, max_tokens: 1000, deadline_ms: 1000, tool_timeout_ms: 10_000 };
    this.budget = new Budget({ ...limits, ...setup.limits }, () => this.now);
  }

  run(): Promise<TaskEnd> {
    this.transcript.user('the task');
    const telemetry = { instance: 'i', traceparent: '', log_level: 'trace', log_content: false };
    const sink = { notify: (m: ChildNotification) => void this.sent.push(m) };
    const reporter = new Reporter({ run_id: 'run-1', telemetry }, () => this.budget.usage, {
      ...sink,
      notifyLossy: sink.notify,
    });
    return runTask(
      {
        model: this.model(),
        broker: this.broker,
        control: this.control,
        budget: this.budget,
        transcript: this.transcript,
        reporter,
        system: 'system',
        tools: {
          brokered: ['s__a', 's__b'].map((name) => ({ name, description: '', input_schema: {} })),
          self: selfTools(this.setup.selfToolNames ?? []),
        },
        contract: this.setup.contract === undefined ? null : compileOutputContract(this.setup.contract),
        toolTimeoutMs: 10_000,
      },
      { sequence: 1, uri: '', server: '' },
    );
  }

  /** The kinds of the progress frames, in order. */
  get progress(): string[] {
    return this.sent.flatMap((m) => (m.method === 'run.progress' ? [m.params.kind] : []));
  }

  get logged(): string[] {
    return this.sent.flatMap((m) => (m.method === 'log' ? [m.params.event] : []));
  }

  private model(): Model {
    return {
      complete: async (request, options) => {
        this.asked.push({ ...request, messages: [...request.messages] });
        const turn = this.setup.turns[Math.min(this.played++, this.setup.turns.length - 1)];
        if (turn === undefined) throw new Error('the fake model has no turns');
        const answer = typeof turn === 'function' ? await turn(request, options) : turn;
        const { usage, model } = answer;
        options.onCall({ endpoint: 0, durationMs: 1, usage, model, failure: null });
        return answer;
      },
    };
  }
}
