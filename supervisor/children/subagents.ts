import type { ToolOutcome } from '../../protocol/frames.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { AgentRun } from './agent-run.ts';
import type { AgentTree, Disposition, Grant, Refusal, SpawnRequest } from './agent-tree.ts';
import type { RunOutcome } from './run.ts';
import { parseSelfCall, type SelfCall } from './self-tools.ts';

/** Ended subagents whose outcome can still be asked for. */
const KEPT_OUTCOMES = 256;
/** Characters of a result that are handed to a parent; the rest is behind a reference. */
const INLINE_CHARACTERS = 32 * 1_024;
/** Characters of a result that are kept at all. */
const KEPT_CHARACTERS = 1024 * 1_024;

export interface SubagentsHooks {
  readonly now: () => number;
  readonly metrics: Metrics;
  /** Starts what was granted. Its end arrives at {@link Subagents.settled}. */
  start(parent: AgentRun, grant: Grant, request: SpawnRequest): AgentRun;
  stop(run: AgentRun, cause: 'cancelled' | 'parent_ended'): void;
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
          this.withOwn(run, call.args.handle, () =>
            failure(
              'this subagent works on one task and takes no messages; start another one with the new task',
            ),
          ),
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
      status: outcome?.status ?? 'running',
      usage: outcome?.usage ?? run.usage,
      has_usable_partial: outcome?.hasUsablePartial ?? false,
    };
  }

  /** The whole result of an ended subagent; null for an unknown handle or one that still runs. */
  result(handle: string): string | null {
    return this.byHandle.get(handle)?.outcome?.result ?? null;
  }

  /** Whether it outlives the agent that asked for it. */
  isDetached(handle: string): boolean {
    return this.byHandle.get(handle)?.disposition === 'detach';
  }

  /** A subagent moved: whoever waits for it is told. */
  moved(handle: string, note: string): void {
    for (const tell of this.byHandle.get(handle)?.progress ?? []) tell(note);
  }

  settled(outcome: RunOutcome): void {
    const subagent = this.byHandle.get(outcome.agentPath);
    if (subagent === undefined) return;
    subagent.outcome = { ...outcome, result: outcome.result.slice(0, KEPT_CHARACTERS) };
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
    this.hooks.metrics.add('agent_refusals_total', { reason: refusal.reason });
    if (refusal.limit !== null) {
      this.hooks.metrics.add('agent_limit_exceeded_total', { limit: refusal.limit });
      parent.log.warn('limit.exceeded', { limit: refusal.limit, msg: 'a subagent was refused' });
    }
    return failure(`refused: ${refusal.text}`);
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

function describe({ run, outcome }: Subagent): ToolOutcome {
  const handle = run.path;
  if (outcome === null) {
    const { steps } = run.usage;
    return {
      text: `subagent ${handle} is running (${steps} steps so far)`,
      is_error: false,
      structured: { handle, status: 'running', usage: run.usage },
    };
  }
  const { status, result, error } = outcome;
  const inline = result.slice(0, INLINE_CHARACTERS);
  const cut = result.length > inline.length ? `\n[cut; the whole is agent://subagent/${handle}/result]` : '';
  const words =
    status === 'completed'
      ? ''
      : `subagent ${handle} ended as ${status}${error === null ? '' : `: ${error.message}`}\n`;
  return {
    text: `${words}${inline}${cut}`,
    is_error: status !== 'completed',
    structured: { handle, status, usage: outcome.usage, has_usable_partial: outcome.hasUsablePartial },
  };
}

function failure(text: string): ToolOutcome {
  return { text, is_error: true };
}
