import { ulid } from 'ulid';
import { childTraceparent } from '../telemetry/trace.ts';
import { AgentRun, outcomeOf, type RunEnd } from './agent-run.ts';
import { AgentTree, type Grant, type RefusalReason, type SpawnRequest, type TreeCaps } from './agent-tree.ts';
import type { Child } from './child.ts';
import type { ProgressParams } from './frame-intake.ts';
import type { RunOutcome, RunSpec, StopCause } from './run.ts';
import { recordSettlement } from './settlement.ts';
import { StepCount } from './step-count.ts';
import { Subagents } from './subagents.ts';
import type { ChildSettings, ChildSupervisorOptions, ReportedModelCall } from './supervisor-options.ts';

export interface Entry {
  readonly run: AgentRun;
  /** Null while the run waits for a child. */
  child: Child | null;
}

export interface RunBookHooks {
  /** Finds a child for a subagent's run. */
  place(run: AgentRun): void;
  stop(entry: Entry, cause: StopCause): void;
  wake(runId: string, messages: readonly string[]): void;
}

/** Every agent that has not settled, where it stands in its tree, and what has become of the others. */
export class RunBook {
  readonly subagents: Subagents;
  private readonly steps: StepCount;
  private readonly tree: AgentTree;
  private limits: ChildSettings['limits'];
  private readonly entries = new Map<string, Entry>();
  private readonly byPath = new Map<string, Entry>();

  constructor(
    private readonly options: ChildSupervisorOptions,
    private readonly hooks: RunBookHooks,
  ) {
    const { clock, limits, metrics } = options;
    this.steps = new StepCount(metrics);
    this.limits = limits;
    this.tree = new AgentTree(treeCaps(limits), clock.now());
    this.subagents = new Subagents(this.tree, {
      now: () => clock.now(),
      metrics,
      refused: (run, reason) => this.refused(run, reason),
      start: (parent, grant, request) => this.addSubagent(parent, grant, request),
      stop: (run, cause) => this.stopPath(run.path, cause),
      wake: (run, messages) => this.hooks.wake(run.spec.runId, messages),
      forbidden: (tools) => options.forbidden?.(tools) ?? null,
      changed: (handle) => options.subagentChanged?.(handle),
    });
  }

  get size(): number {
    return this.entries.size;
  }

  /** Other limits for what is launched from here on. */
  configure(limits: ChildSettings['limits']): void {
    this.limits = limits;
    this.tree.configure(treeCaps(limits));
  }

  all(): readonly Entry[] {
    return [...this.entries.values()];
  }

  get(runId: string): Entry | undefined {
    return this.entries.get(runId);
  }

  /** Enters what the engine launches; null when that run is under way already. */
  addRoot(spec: RunSpec): AgentRun | null {
    const { clock, log } = this.options;
    if (this.entries.has(spec.runId)) {
      log.error('loop.error', { msg: `run ${spec.runId} was launched twice; the second launch is ignored` });
      return null;
    }
    const now = clock.now();
    const { path } = this.tree.addRoot(spec, spec.route === null, now);
    const place = { agentId: ulid(), path, depth: 0, parent: null, rootRunId: spec.runId };
    const maxTokens = Math.min(spec.limits.max_tokens, this.limits.treeTokens);
    const bounded = { ...spec, limits: { ...spec.limits, max_tokens: maxTokens } };
    return this.enter(new AgentRun(bounded, place, now, log));
  }

  /** Policy refused something to that agent: counted for it, and for those it works for. */
  refused(run: AgentRun, reason: RefusalReason): void {
    this.options.metrics.add('agent_refusals_total', { reason });
    if (reason === 'other') return;
    run.refusals[reason] += 1;
    for (const path of this.tree.ancestors(run.path)) {
      const above = this.byPath.get(path);
      if (above !== undefined) above.run.refusals[reason] += 1;
    }
  }

  /** Whether it may start subagents at all. */
  mayBranch(run: AgentRun): boolean {
    const { maxDepth, maxChildren } = this.limits;
    return run.depth < maxDepth && maxChildren > 0;
  }

  progress(run: AgentRun, params: ProgressParams): void {
    const { tokens_in, tokens_out, steps } = params.usage;
    this.steps.take(run.spec.runId, steps);
    if (params.kind === 'start') this.begun(run);
    if (params.call !== undefined) this.options.modelCall?.(modelCallOf(run, params.call, params.model), run);
    const passed = this.tree.report(run.path, tokens_in + tokens_out);
    for (const path of this.tree.ancestors(run.path)) this.byPath.get(path)?.child?.noteProgress();
    if (run.parent !== null) this.subagents.moved(run.path, `subagent ${run.path}: step ${steps}`);
    if (passed) for (const path of this.tree.wholeTree(run.path)) this.stopPath(path, 'tree_tokens');
  }

  /** The run has answered, is being stopped or has gone: so do its descendants, deepest first. */
  ending(run: AgentRun): void {
    this.tree.tearDown(run.path);
    for (const path of this.tree.descendants(run.path)) {
      if (!this.isDetachedFrom(path, run.path)) this.stopPath(path, 'parent_ended');
    }
  }

  /** Reports how a run ended. Exactly once a run. */
  settle(run: AgentRun, end: RunEnd): void {
    const { clock, metrics, emit } = this.options;
    if (!this.entries.delete(run.spec.runId)) return;
    this.byPath.delete(run.path);
    this.ending(run);
    this.tree.remove(run.path);
    const outcome = this.withSubagents(run, outcomeOf(run, end, clock.now()));
    this.steps.finish(run.spec.runId, outcome.usage.steps);
    recordSettlement(run, outcome, run.log, metrics);
    this.options.settled?.(run, outcome);
    if (end.rung === 'kill' && end.cause === null) {
      run.log.warn('subagent.orphan', { msg: 'it left running processes behind; they were killed' });
    }
    if (run.parent === null) emit({ type: 'run.settled', outcome });
    else this.subagents.settled(outcome);
  }

  /** Sets the gauges of the tree. */
  tick(): void {
    const { metrics } = this.options;
    metrics.set('agent_active_subagents', this.entries.size);
    metrics.set('agent_tree_depth', this.tree.depth);
    metrics.set('agent_tree_breadth', this.tree.breadth);
  }

  /** Its loop runs: told once, for what the engine launched. */
  private begun(run: AgentRun): void {
    if (run.parent !== null || run.begun) return;
    run.begun = true;
    this.options.emit({ type: 'run.begun', runId: run.spec.runId, agentPath: run.path });
  }

  private withSubagents(run: AgentRun, outcome: RunOutcome): RunOutcome {
    return { ...outcome, usage: { ...outcome.usage, subagents: run.subagentsStarted } };
  }

  private addSubagent(parent: AgentRun, grant: Grant, request: SpawnRequest): AgentRun {
    const spec: RunSpec = {
      runId: ulid(),
      // An async subagent can be sent messages, so it is a session whose first wake is its task.
      kind: request.disposition === 'async' ? 'session' : 'run',
      instruction: request.instruction,
      event: null,
      tools: grant.tools,
      limits: grant.limits,
      outputContract: request.outputContract,
      traceparent: childTraceparent(parent.spec.traceparent),
      parentTraceparent: parent.spec.traceparent,
      route: parent.spec.route,
    };
    parent.subagentsStarted += 1;
    for (const above of this.tree.ancestors(parent.path)) {
      const entry = this.byPath.get(above);
      if (entry !== undefined) entry.run.subagentsStarted += 1;
    }
    const { path, depth } = grant;
    const place = { agentId: ulid(), path, depth, parent: parent.path, rootRunId: parent.rootRunId };
    const run = this.enter(new AgentRun(spec, place, this.options.clock.now(), this.options.log));
    if (spec.kind === 'session') run.earlyWakes.push({ uris: [], messages: [] });
    // In a later tick: the request has to be on record before its subagent can settle.
    setImmediate(() => {
      if (this.entries.has(spec.runId)) this.hooks.place(run);
    });
    return run;
  }

  private enter(run: AgentRun): AgentRun {
    const entry: Entry = { run, child: null };
    this.entries.set(run.spec.runId, entry);
    this.byPath.set(run.path, entry);
    return run;
  }

  private stopPath(path: string, cause: StopCause): void {
    const entry = this.byPath.get(path);
    if (entry !== undefined) this.hooks.stop(entry, cause);
  }

  /** Whether `path` or an agent between it and `ancestor` was started to outlive its parent. */
  private isDetachedFrom(path: string, ancestor: string): boolean {
    const between = [path, ...this.tree.ancestors(path)];
    return between.slice(0, between.indexOf(ancestor)).some((one) => this.subagents.isDetached(one));
  }
}

function treeCaps(limits: ChildSettings['limits']): TreeCaps {
  return {
    maxDepth: limits.maxDepth,
    maxChildren: limits.maxChildren,
    maxTotal: limits.maxTotalSubagents,
    treeTokens: limits.treeTokens,
    spawnRate: { burst: 8, perSecond: 2 },
  };
}

function modelCallOf(
  run: AgentRun,
  call: NonNullable<ProgressParams['call']>,
  model: string | undefined,
): ReportedModelCall {
  return {
    // The child counts in the order it was given; everybody else in the order of the configuration.
    endpoint: run.endpoints[call.endpoint] ?? call.endpoint,
    model: model ?? 'unknown',
    ok: call.ok,
    reason: call.reason,
    durMs: call.dur_ms,
    tokensIn: call.tokens_in,
    tokensOut: call.tokens_out,
    spanId: call.span_id,
  };
}
