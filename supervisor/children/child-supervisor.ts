import { errorMessage } from '../../protocol/errors.ts';
import type { AgentRun, RunEnd } from './agent-run.ts';
import { type AgentView, agentView } from './agent-view.ts';
import { type Cgroups, openCgroups } from './cgroup.ts';
import { Child } from './child.ts';
import { wasTold } from './child-end.ts';
import { childOptions } from './child-options.ts';
import { agentEnvironment } from './environment.ts';
import type { TurnParams } from './frame-intake.ts';
import { inspectIfChosen } from './inspection.ts';
import { killLeftovers } from './leftovers.ts';
import { ModelWarmth } from './model-warmth.ts';
import { ChildPool, poolLimits } from './pool.ts';
import { ProcessWatch } from './process-watch.ts';
import { type Reaper, startReaper } from './reaper.ts';
import type { Children, RunSpec, StopCause, Unstopped } from './run.ts';
import { type Entry, RunBook } from './run-book.ts';
import { recordStartability, recordWarmDeath, refusedResult } from './settlement.ts';
import { startFrame } from './start-frame.ts';
import type { ChildSettings, ChildSupervisorOptions, ModelChoice } from './supervisor-options.ts';
import { drainChildren, killChildren, type Living, livingOf } from './teardown.ts';
import { DEFAULT_TIMINGS, type SupervisorTimings } from './timings.ts';

/** Every child process of one supervisor, and the tree of agents in them. */
export class ChildSupervisor implements Children {
  private readonly timings: SupervisorTimings;
  private settings: ChildSettings;
  private readonly env: Record<string, string>;
  private readonly book: RunBook;
  private readonly pool: ChildPool;
  private readonly watch: ProcessWatch;
  private readonly warmth: ModelWarmth;
  private readonly cgroups: Cgroups | null;
  private reaper: Reaper | null = null;
  private readonly children = new Set<Child>();
  private readonly living: Living;
  /** Children whose group SIGKILL did not empty: reported, not forgotten. */
  private readonly unkillable: Child[] = [];
  private readonly emptied: (() => void)[] = [];
  private anyCameUp = false;
  private closing: StopCause | null = null;
  private ticker: NodeJS.Timeout | undefined;

  constructor(private readonly options: ChildSupervisorOptions) {
    this.timings = { ...DEFAULT_TIMINGS, ...options.timings };
    this.settings = options;
    const { cgroup } = options;
    this.cgroups = cgroup === undefined || cgroup === null ? null : openCgroups(cgroup, options.log);
    this.env = agentEnvironment(options.env);
    this.book = new RunBook(options, {
      place: (run) => this.place(run),
      stop: (entry, cause) => this.stopEntry(entry, cause),
      wake: (runId, messages) => this.wake(runId, [], messages),
    });
    this.pool = new ChildPool(
      {
        clock: options.clock,
        random: options.random ?? Math.random,
        slotMs: this.timings.spawnSlotMs,
        ...poolLimits(),
      },
      {
        spawn: () => this.spawn(),
        start: (child, run) => this.begin(child, run),
        failed: (run, end) => this.book.settle(run, end),
        warmDied: (reason, verdict) => recordWarmDeath(reason, verdict, options.log, options.metrics),
        canStart: (problem) => recordStartability(problem, options),
      },
    );
    this.watch = new ProcessWatch({ clock: options.clock, log: options.log, sampleMs: this.timings.usageMs });
    this.warmth = new ModelWarmth(options.heldModel ?? (() => null));
    this.living = livingOf(options.log, this.children, this.unkillable, (tell) => this.emptied.push(tell));
  }

  /** Other settings for what is launched from here on; what runs keeps its own. */
  configure(settings: ChildSettings): void {
    this.settings = settings;
    this.book.configure(settings.limits);
    for (const child of this.children) this.warmth.tell(child);
  }

  get active(): number {
    return this.book.size;
  }

  get warm(): number {
    return this.pool.warm;
  }

  /** Whether a connection to the model is held open for the next run. */
  get holdsModel(): boolean {
    return this.warmth.any;
  }

  get canStart(): boolean {
    return this.pool.canStart;
  }

  /** Every agent that has not settled. */
  get runs(): readonly AgentRun[] {
    return this.book.all().map(({ run }) => run);
  }

  /** Subagents by handle, for `agent://subagent/…`. */
  get subagents(): RunBook['subagents'] {
    return this.book.subagents;
  }

  /**
   * Takes on the duties of an init: kills what outlived a supervisor that is dead, and adopts
   * orphans from here on. Loads a native library, so it is called once work is under way. Never
   * rejects; without it children are supervised all the same.
   */
  async start(): Promise<void> {
    killLeftovers(this.options.log);
    this.reaper ??= await startReaper(this.options.log);
  }

  launch(spec: RunSpec): void {
    const run = this.book.addRoot(spec);
    if (run === null) return;
    const forbidden = this.options.forbidden?.(spec.tools) ?? null;
    if (forbidden === null) {
      this.place(run);
      return;
    }
    this.book.refused(run, 'trifecta');
    run.result = refusedResult(spec.runId, forbidden);
    this.settleUnstarted(run, null);
  }

  wake(runId: string, uris: readonly string[], messages: readonly string[]): void {
    const entry = this.book.get(runId);
    if (entry === undefined) return;
    if (entry.child === null) entry.run.earlyWakes.push({ uris, messages });
    else entry.child.wake(uris, messages);
  }

  stop(runId: string, cause: StopCause, withinMs?: number): void {
    const entry = this.book.get(runId);
    if (entry !== undefined) this.stopEntry(entry, cause, withinMs);
  }

  /** Stops the agent with this handle for an operator; false when none runs. */
  cancel(handle: string): boolean {
    const entry = this.book.all().find(({ run }) => run.path === handle);
    if (entry !== undefined) this.stopEntry(entry, 'cancelled');
    return entry !== undefined;
  }

  pause(runId: string | null): void {
    this.setPause(runId, true);
  }

  resume(runId: string | null): void {
    this.setPause(runId, false);
  }

  setWarmTarget(count: number): void {
    if (this.closing === null) this.pool.setTarget(count);
  }

  drain(budgetMs: number): Promise<readonly Unstopped[]> {
    this.close('drain');
    return drainChildren(this.living, budgetMs, this.timings);
  }

  killAll(budgetMs: number): Promise<readonly Unstopped[]> {
    this.close('forced');
    return killChildren(this.living, budgetMs);
  }

  /** Agents that have not settled, for operators. */
  inventory(): readonly AgentView[] {
    const now = this.options.clock.now();
    return this.book.all().map((entry) => agentView(entry, this.watch, now));
  }

  /** Nothing starts from here on (invariant 4); what waits for a child settles at once. */
  private close(cause: StopCause): void {
    this.closing ??= cause;
    for (const run of this.pool.close()) this.settleUnstarted(run, cause);
  }

  private place(run: AgentRun): void {
    if (this.closing === null) this.pool.place(run);
    else this.settleUnstarted(run, this.closing);
  }

  private stopEntry(entry: Entry, cause: StopCause, withinMs?: number): void {
    if (entry.child !== null) entry.child.stop(cause, withinMs);
    else {
      this.pool.withdraw(entry.run);
      this.settleUnstarted(entry.run, cause);
    }
  }

  private setPause(runId: string | null, wanted: boolean): void {
    const entries = runId === null ? this.book.all() : [this.book.get(runId)];
    for (const entry of entries) {
      if (entry === undefined) continue;
      entry.run.pauseWanted = wanted;
      entry.child?.tell(wanted ? 'run.pause' : 'run.resume');
    }
  }

  private spawn(): Child {
    const child = new Child(
      childOptions(this.options, {
        timings: this.timings,
        env: this.env,
        cgroup: this.cgroups?.leaf() ?? null,
        first: !this.anyCameUp,
      }),
      {
        callTool: this.options.callTool,
        selfCall: (run, name, args, signal, progress) =>
          this.book.subagents.call(run, name, args, signal, progress),
        outOfScope: (_name, run) => this.book.refused(run, 'mcp'),
        ready: (one) => {
          this.anyCameUp = true;
          if (this.closing !== null) return;
          this.pool.onReady(one);
          this.warmth.tell(one);
        },
        modelHeld: (one, origin, open) => this.warmth.heard(one, origin, open),
        progress: (run, params) => this.book.progress(run, params),
        turn: (run, turn) => this.onTurn(run, turn),
        convicted: (one, cause, health) => this.watch.report(one, cause, health),
        ending: (run) => this.book.ending(run),
        ended: (one, end) => this.onEnded(one, end),
      },
    );
    this.children.add(child);
    this.ticker ??= setInterval(() => this.tick(), this.timings.tickMs);
    return child;
  }

  /** Hands the run to the child in this very tick. False when the child is still to be had. */
  private begin(child: Child, run: AgentRun): boolean {
    const entry = this.book.get(run.spec.runId);
    if (entry === undefined) return false;
    let model: ModelChoice;
    try {
      model = this.options.model();
    } catch (error) {
      this.settleUnstarted(run, 'spawn_failed', { type: 'ModelConfiguration', message: errorMessage(error) });
      return false;
    }
    const { limits, telemetry } = this.settings;
    run.equip(model, limits, this.options.timings?.noProgressMs ?? limits.noProgressMs);
    entry.child = child;
    const start = startFrame(run, model.block, this.book.mayBranch(run), telemetry);
    this.warmth.forget(child);
    child.assign(run, inspectIfChosen(child, run, start, this.options.inspect));
    for (const { uris, messages } of run.earlyWakes.splice(0)) child.wake(uris, messages);
    if (run.pauseWanted) child.tell('run.pause');
    this.options.metrics.add('agent_subagents_spawned_total');
    run.log.info('subagent.spawn', { pid_child: child.pid, route: run.spec.route, depth: run.depth });
    if (run.parent === null) {
      const { runId } = run.spec;
      const waitMs = this.options.clock.now() - run.launchedAt;
      this.options.emit({ type: 'run.started', runId, agentPath: run.path, pid: child.pid ?? 0, waitMs });
    }
    return true;
  }

  private onTurn(run: AgentRun, turn: TurnParams): void {
    const { sequence, status, result } = turn;
    if (run.parent !== null) this.book.subagents.turned(run.path, turn);
    else this.options.emit({ type: 'session.turn', runId: run.spec.runId, sequence, status, result });
  }

  private onEnded(child: Child, end: RunEnd): void {
    this.children.delete(child);
    this.warmth.forget(child);
    if (child.process.members().length > 0) this.unkillable.push(child);
    if (child.run !== null) this.book.settle(child.run, end);
    else this.pool.onEnded(child, end, wasTold(end.cause));
    if (this.children.size > 0) return;
    clearInterval(this.ticker);
    this.ticker = undefined;
    for (const tell of this.emptied.splice(0)) tell();
  }

  private settleUnstarted(run: AgentRun, cause: StopCause | null, error: RunEnd['error'] = null): void {
    this.book.settle(run, { cause, exit: null, rung: 'none', error });
  }

  private tick(): void {
    for (const child of this.children) child.tick();
    this.watch.tick(this.children);
    this.book.tick();
  }
}
