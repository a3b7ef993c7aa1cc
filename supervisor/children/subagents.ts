import type { ToolOutcome } from '../../protocol/frames.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { AgentRun } from './agent-run.ts';
import type { AgentTree, Disposition, Grant, Refusal, RefusalReason, SpawnRequest } from './agent-tree.ts';
import type { TurnParams } from './frame-intake.ts';
import type { RunOutcome } from './run.ts';
import { parseSelfCall, type SelfCall } from './self-tools.ts';

/** Ended subagents whose outcome can still be asked for. */
const KEPT_OUTCOMES = 256;
/** Characters of a result that are handed to a parent; the rest is behind a reference. */
const INLINE_CHARACTERS = 32 * 1_024;
/** How long an async subagent that has answered can still be sent a message, ms. */
const LINGER_MS = 60_000;
/** Messages that may wait for one subagent. */
const MAX_OWED = 16;
/** Characters of a result that are kept at all. */
const KEPT_CHARACTERS = 1024 * 1_024;

export interface SubagentsHooks {
  readonly now: () => number;
  readonly metrics: Metrics;
  /** A request was refused: to be counted. */
  refused(run: AgentRun, reason: RefusalReason): void;
  /** Starts what was granted. Its end arrives at {@link Subagents.settled}. */
  start(parent: AgentRun, grant: Grant, request: SpawnRequest): AgentRun;
  stop(run: AgentRun, cause: 'cancelled' | 'parent_ended'): void;
  /** Wakes a subagent that is a session. */
  wake(run: AgentRun, messages: readonly string[]): void;
  /** A refusal of the Rule of Two, or null. */
  forbidden(tools: Grant['tools']): string | null;
  /** A subagent changed: `agent://subagent/{handle}` is to be read again. */
  changed(handle: string): void;
}

interface Subagent {
  readonly run: AgentRun;
  readonly parent: string;
  readonly disposition: Disposition;
  readonly waiters: ((outcome: RunOutcome) => void)[];
  readonly progress: Set<(note: string) => void>;
  outcome: RunOutcome | null;
  /** Of an async one, which is a session: the last turn it made. */
  turn: TurnParams | null;
  /** Turns it still owes. */
  owed: number;
  linger: NodeJS.Timeout | undefined;
}

/** What `agent://subagent/{handle}` shows. */
export interface SubagentView {
  readonly handle: string;
  readonly parent: string;
  readonly disposition: Disposition;
  readonly status: RunOutcome['status'] | 'running';
  readonly usage: RunOutcome['usage'];
  readonly has_usable_partial: boolean;
}

/** Answers the subagent tools: every new agent passes through the tree's one gate. */
export class Subagents {
  private readonly byHandle = new Map<string, Subagent>();
  private readonly ended: string[] = [];

  constructor(
    private readonly tree: AgentTree,
    private readonly hooks: SubagentsHooks,
  ) {}

  call(
    run: AgentRun,
    name: string,
    args: Record<string, unknown>,
    signal: AbortSignal,
    progress: (note: string) => void,
  ): Promise<ToolOutcome> {
    const call = parseSelfCall(name, args);
    if (typeof call === 'string') return Promise.resolve(failure(call));
    switch (call.tool) {
      case 'subagent_spawn':
        return this.spawn(run, call.args, signal, progress);
      case 'subagent_status':
        return Promise.resolve(this.withOwn(run, call.args.handle, (subagent) => describe(subagent)));
      case 'subagent_cancel':
        return Promise.resolve(this.withOwn(run, call.args.handle, (subagent) => this.cancel(subagent)));
      case 'subagent_send':
        return Promise.resolve(
          this.withOwn(run, call.args.handle, (subagent) => this.send(subagent, call.args.message)),
        );
    }
  }

  /** What is known of a subagent; null for an unknown handle. */
  view(handle: string): SubagentView | null {
    const subagent = this.byHandle.get(handle);
    if (subagent === undefined) return null;
    const { outcome, run } = subagent;
    return {
      handle,
      parent: subagent.parent,
      disposition: subagent.disposition,
      status: statusOf(subagent),
      usage: outcome?.usage ?? run.usage,
      has_usable_partial: outcome?.hasUsablePartial ?? false,
    };
  }

  /** The whole result of an ended subagent; null for an unknown handle or one that still runs. */
  result(handle: string): string | null {
    const subagent = this.byHandle.get(handle);
    return subagent?.outcome?.result ?? subagent?.turn?.result ?? null;
  }

  /** Whether it outlives the agent that asked for it. */
  isDetached(handle: string): boolean {
    return this.byHandle.get(handle)?.disposition === 'detach';
  }

  /** A subagent moved: whoever waits for it is told. */
  moved(handle: string, note: string): void {
    for (const tell of this.byHandle.get(handle)?.progress ?? []) tell(note);
  }

  /** An async subagent has answered; it can be sent messages for a while. */
  turned(handle: string, turn: TurnParams): void {
    const subagent = this.byHandle.get(handle);
    if (subagent === undefined) return;
    subagent.turn = { ...turn, result: turn.result.slice(0, KEPT_CHARACTERS) };
    subagent.owed -= 1;
    if (subagent.owed === 0) {
      subagent.linger = setTimeout(() => this.hooks.stop(subagent.run, 'cancelled'), LINGER_MS);
    }
    this.hooks.changed(handle);
  }

  settled(outcome: RunOutcome): void {
    const subagent = this.byHandle.get(outcome.agentPath);
    if (subagent === undefined) return;
    clearTimeout(subagent.linger);
    const answered = subagent.turn !== null && subagent.owed === 0 ? subagent.turn : null;
    // A session that had answered everything was only let go: its last answer is what it came to.
    const ended =
      answered === null ? outcome : { ...outcome, status: answered.status, result: answered.result };
    subagent.outcome = { ...ended, result: ended.result.slice(0, KEPT_CHARACTERS) };
    for (const tell of subagent.waiters.splice(0)) tell(subagent.outcome);
    subagent.progress.clear();
    this.ended.push(outcome.agentPath);
    while (this.ended.length > KEPT_OUTCOMES) {
      const oldest = this.ended.shift();
      if (oldest !== undefined) this.byHandle.delete(oldest);
    }
    this.hooks.changed(outcome.agentPath);
  }

  private spawn(
    parent: AgentRun,
    args: Extract<SelfCall, { tool: 'subagent_spawn' }>['args'],
    signal: AbortSignal,
    progress: (note: string) => void,
  ): Promise<ToolOutcome> {
    const request: SpawnRequest = {
      instruction: args.instruction,
      tools: args.tools ?? null,
      disposition: args.disposition ?? 'sync',
      maxSteps: args.max_steps ?? null,
      maxTokens: args.max_tokens ?? null,
      deadlineMs: args.deadline_ms ?? null,
      outputContract: args.output_contract ?? null,
    };
    const tools = parent.spec.tools.filter((tool) => request.tools?.includes(tool.name) ?? true);
    const forbidden = this.hooks.forbidden(tools);
    const answer =
      forbidden === null
        ? this.tree.request(parent.path, request, this.hooks.now())
        : ({ granted: false, reason: 'trifecta', limit: null, text: forbidden } as const);
    if (!answer.granted) return Promise.resolve(this.refuse(parent, answer));
    const run = this.hooks.start(parent, answer, request);
    const subagent: Subagent = {
      run,
      parent: parent.path,
      disposition: request.disposition,
      waiters: [],
      progress: new Set(),
      outcome: null,
      turn: null,
      owed: 1,
      linger: undefined,
    };
    this.byHandle.set(run.path, subagent);
    this.hooks.changed(run.path);
    if (request.disposition !== 'sync') {
      return Promise.resolve({
        text: `started subagent ${run.path}; ask for it with subagent_status`,
        is_error: false,
        structured: { handle: run.path, status: 'running', resource: `agent://subagent/${run.path}` },
      });
    }
    return new Promise((resolve) => {
      subagent.waiters.push(() => resolve(describe(subagent)));
      subagent.progress.add(progress);
      signal.addEventListener('abort', () => this.hooks.stop(run, 'parent_ended'), { once: true });
    });
  }

  private refuse(parent: AgentRun, refusal: Refusal): ToolOutcome {
    this.hooks.refused(parent, refusal.reason);
    if (refusal.limit !== null) {
      this.hooks.metrics.add('agent_limit_exceeded_total', { limit: refusal.limit });
      parent.log.warn('limit.exceeded', { limit: refusal.limit, msg: 'a subagent was refused' });
    }
    return failure(`refused: ${refusal.text}`);
  }

  private send(subagent: Subagent, message: string): ToolOutcome {
    const { run } = subagent;
    if (subagent.outcome !== null) return failure(`subagent ${run.path} has ended; start another one`);
    if (run.spec.kind !== 'session') {
      return failure(`subagent ${run.path} takes no messages; only one started as async does`);
    }
    if (subagent.owed >= MAX_OWED)
      return failure(`${subagent.owed} messages wait for subagent ${run.path} already`);
    clearTimeout(subagent.linger);
    subagent.owed += 1;
    this.hooks.wake(run, [message]);
    return {
      text: `sent; ask for the answer of subagent ${run.path} with subagent_status`,
      is_error: false,
      structured: { handle: run.path, status: 'running' },
    };
  }

  private cancel(subagent: Subagent): ToolOutcome {
    if (subagent.outcome !== null) return describe(subagent);
    this.hooks.stop(subagent.run, 'cancelled');
    return { text: `subagent ${subagent.run.path} is being stopped`, is_error: false };
  }

  private withOwn(run: AgentRun, handle: string, act: (subagent: Subagent) => ToolOutcome): ToolOutcome {
    const subagent = this.byHandle.get(handle);
    if (subagent === undefined || subagent.parent !== run.path) {
      return failure(`there is no subagent ${handle} of yours; use the handle subagent_spawn returned`);
    }
    return act(subagent);
  }
}

function statusOf({ outcome, turn, owed }: Subagent): SubagentView['status'] {
  if (outcome !== null) return outcome.status;
  return turn !== null && owed === 0 ? turn.status : 'running';
}

function describe(subagent: Subagent): ToolOutcome {
  const { run, outcome, turn } = subagent;
  const handle = run.path;
  const status = statusOf(subagent);
  const usage = outcome?.usage ?? run.usage;
  if (status === 'running') {
    return {
      text: `subagent ${handle} is running (${usage.steps} steps so far)`,
      is_error: false,
      structured: { handle, status, usage },
    };
  }
  const result = outcome?.result ?? turn?.result ?? '';
  const inline = result.slice(0, INLINE_CHARACTERS);
  const cut = result.length > inline.length ? `\n[cut; the whole is agent://subagent/${handle}/result]` : '';
  const error = outcome?.error ?? null;
  const why = error === null ? '' : `: ${error.message}`;
  const words = status === 'completed' ? '' : `subagent ${handle} ended as ${status}${why}\n`;
  return {
    text: `${words}${inline}${cut}`,
    is_error: status !== 'completed',
    structured: { handle, status, usage, has_usable_partial: outcome?.hasUsablePartial ?? result !== '' },
  };
}

function failure(text: string): ToolOutcome {
  return { text, is_error: true };
}
