import { AgentdError, errorMessage } from '../../protocol/errors.ts';
import type { ToolOutcome } from '../../protocol/frames.ts';
import type { OutputContract } from '../../protocol/output-contract.ts';
import type { TerminalStatus } from '../../protocol/terminal-status.ts';
import type { Model, ModelAnswer, TaskContext } from '../model/model.ts';
import type { Reporter } from '../report.ts';
import type { BrokerClient } from '../tools/broker-client.ts';
import type { Budget } from './budget.ts';
import { distill } from './distill.ts';
import { LAST_STEP, NUDGE, REPEATING, repairMessage } from './prompt.ts';
import type { RunControl } from './run-control.ts';
import { FRESH_WATCH, type TurnEvent, watchTurn } from './stop-conditions.ts';
import { executeTurn, type PlannedCall, planTurn, type ToolSet } from './tool-turn.ts';
import type { Transcript } from './transcript.ts';
import { verify } from './verify.ts';

export interface LoopParts {
  readonly model: Model;
  readonly broker: BrokerClient;
  readonly control: RunControl;
  readonly budget: Budget;
  readonly transcript: Transcript;
  readonly reporter: Reporter;
  readonly system: string;
  readonly tools: ToolSet;
  readonly contract: OutputContract | null;
  readonly toolTimeoutMs: number;
}

/** Longest error message that leaves a child, characters. */
const LONGEST_MESSAGE = 2000;

/** How one task ended. */
export interface TaskEnd {
  readonly status: TerminalStatus;
  /** Distilled; the best there is when the task did not complete. */
  readonly result: string;
  readonly hasUsablePartial: boolean;
  readonly error: { readonly type: string; readonly message: string } | null;
  readonly intelligenceFailed: boolean;
}

/**
 * Works on one task until it ends: assemble, ask the model, make its calls, judge the turn, verify
 * the answer. The task itself is already in the transcript. Never rejects.
 */
export async function runTask(parts: LoopParts, task: TaskContext): Promise<TaskEnd> {
  const loop = new TaskLoop(parts, task);
  try {
    return await loop.run();
  } catch (error) {
    return loop.failed(error);
  }
}

class TaskLoop {
  private watch = FRESH_WATCH;
  /** The last thing the model said that could serve as a result. */
  private partial: string | null = null;
  private readonly tools;

  constructor(
    private readonly parts: LoopParts,
    private readonly task: TaskContext,
  ) {
    this.tools = [...parts.tools.brokered, ...parts.tools.self];
  }

  async run(): Promise<TaskEnd> {
    for (;;) {
      const ended = (await this.passBoundary(true)) ?? this.checkBudget();
      if (ended !== null) return ended;
      const answer = await this.ask();
      const end = answer.calls.length > 0 ? await this.call(answer) : this.judge(answer);
      if (end !== null) return end;
    }
  }

  /** How the task ends when something was thrown. */
  failed(error: unknown): TaskEnd {
    const wanted = this.parts.control.state;
    if (wanted.kind === 'stop') {
      return this.end(wanted.request.kind === 'deadline' ? 'deadline' : 'cancelled');
    }
    const crash = crashOf(error);
    this.parts.reporter.log('error', 'loop.error', { err: crash.error });
    const { hasUsablePartial, result } = this.end('crashed');
    return { ...crash, hasUsablePartial, result };
  }

  /** Waits while paused. Between an answer and its calls a wind-down waits for the end of the turn. */
  private async passBoundary(endOfTurn: boolean): Promise<TaskEnd | null> {
    const { control, reporter } = this.parts;
    const passage = await control.boundary((kind) => reporter.progress(kind));
    if (passage.kind === 'stop') {
      return this.end(passage.request.kind === 'deadline' ? 'deadline' : 'cancelled');
    }
    return passage.kind === 'wind_down' && endOfTurn ? this.end('cancelled') : null;
  }

  private checkBudget(): TaskEnd | null {
    const exhausted = this.parts.budget.exhausted();
    return exhausted === null ? null : this.end(exhausted);
  }

  private async ask(): Promise<ModelAnswer> {
    const { budget, control, model, reporter, system, transcript } = this.parts;
    if (budget.stepsLeft === 1 && budget.usage.steps > 0) transcript.user(LAST_STEP);
    budget.recordStep();
    reporter.progress('step');
    const { steps } = budget.usage;
    reporter.log('debug', 'loop.step', { step: steps, messages: transcript.messages.length });
    reporter.log('debug', 'intel.call', { step: steps, characters: transcript.length });
    const request = {
      system,
      messages: transcript.messages,
      tools: this.tools,
      task: this.task,
      tokensLeft: budget.tokensLeft,
    };
    // Raced, so that a model that does not hear the stop cannot hold the run.
    const answer = await abortable(
      model.complete(request, {
        signal: control.signal,
        onCall: (report) => {
          budget.recordTokens(report.usage);
          reporter.modelCall(report);
        },
        onWaiting: () => reporter.progress('model'),
      }),
      control.signal,
    );
    if (answer.text.trim() !== '') this.partial = answer.text;
    return answer;
  }

  private async call(answer: ModelAnswer): Promise<TaskEnd | null> {
    const { broker, control, toolTimeoutMs, tools, transcript } = this.parts;
    const plan = planTurn(transcript.assistant(answer.text, answer.calls), tools);
    if (plan.refusal !== null) return this.refused(plan.refusal);
    const stopped = await this.passBoundary(false);
    if (stopped !== null) return stopped;
    const outcomes = await executeTurn(plan.calls, {
      broker,
      timeoutMs: toolTimeoutMs,
      signal: control.signal,
      observe: this.observer(),
    });
    for (const [index, { call }] of plan.calls.entries()) {
      const outcome = outcomes[index];
      if (outcome === undefined) continue;
      transcript.result(call, outcome.text, outcome.is_error, plan.calls.length);
    }
    const { signature } = plan;
    return this.judgeTurn(signature === null ? { kind: 'unusable' } : { kind: 'called', signature });
  }

  /** An answer without calls: final, declined, or neither. */
  private judge(answer: ModelAnswer): TaskEnd | null {
    const { contract, transcript } = this.parts;
    transcript.assistant(answer.text, []);
    if (answer.stop === 'declined') return this.refused(answer.text);
    if (answer.stop === 'cut_off') return this.judgeTurn({ kind: 'unfinished' }) ?? this.say(NUDGE);
    const verified = verify(answer.text, contract);
    if (verified.ok) return { ...this.end('completed'), result: verified.result, hasUsablePartial: false };
    return this.judgeTurn({ kind: 'rejected' }) ?? this.say(repairMessage(verified.problem));
  }

  private judgeTurn(event: TurnEvent): TaskEnd | null {
    const { verdict, watch } = watchTurn(this.watch, event);
    this.watch = watch;
    if (verdict.kind === 'end') return this.end(verdict.status);
    return verdict.kind === 'warn' ? this.say(REPEATING) : null;
  }

  private say(text: string): null {
    this.parts.transcript.user(text);
    return null;
  }

  private refused(reason: string): TaskEnd {
    return { ...this.end('refused'), result: distill(reason), hasUsablePartial: false };
  }

  /** An end other than completion: what the model said last is its result, if it satisfies the contract. */
  private end(status: TerminalStatus): TaskEnd {
    const partial = this.partial === null ? null : verify(this.partial, this.parts.contract);
    return partial?.ok ? { ...endOf(status), result: partial.result, hasUsablePartial: true } : endOf(status);
  }

  private observer(): (planned: PlannedCall, outcome: ToolOutcome | null) => void {
    const { budget, reporter } = this.parts;
    const started = new Map<PlannedCall, number>();
    return (planned, outcome) => {
      const tool = planned.call.name.slice(0, 64);
      if (outcome === null) {
        started.set(planned, performance.now());
        if (!reporter.logs('debug')) return;
        const args = planned.kind === 'impossible' ? '' : JSON.stringify(planned.arguments);
        reporter.log('debug', 'tool.call', { tool, ...reporter.content(args) });
        return;
      }
      if (tool === 'subagent_spawn' && !outcome.is_error) budget.recordSubagent();
      const level = outcome.is_error ? 'warn' : 'debug';
      if (!reporter.logs(level)) return;
      reporter.log(level, 'tool.result', {
        tool,
        ok: !outcome.is_error,
        dur_ms: Math.round(performance.now() - (started.get(planned) ?? 0)),
        ...reporter.content(outcome.text),
      });
    };
  }
}

/** An end with nothing to show. */
export function endOf(status: TerminalStatus): TaskEnd {
  return { status, result: '', hasUsablePartial: false, error: null, intelligenceFailed: false };
}

/** The end of a task that something thrown has ended. */
export function crashOf(error: unknown): TaskEnd {
  const type = error instanceof AgentdError ? error.code : 'INTERNAL';
  return {
    ...endOf('crashed'),
    error: { type, message: errorMessage(error).slice(0, LONGEST_MESSAGE) },
    intelligenceFailed: type === 'INTELLIGENCE_UNREACHABLE' || type === 'INTELLIGENCE_AUTH',
  };
}

/** Rejects with the reason of `signal` as soon as it aborts. */
async function abortable<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  let onAbort = (): void => undefined;
  const aborted = new Promise<never>((_resolve, reject) => {
    onAbort = () => reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
  });
  try {
    signal.throwIfAborted();
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
    // The loser may still fail, with nobody listening.
    work.catch(() => undefined);
  }
}
