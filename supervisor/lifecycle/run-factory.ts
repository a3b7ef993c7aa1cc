import picomatch from 'picomatch';
import type { RunLimits, ToolDescriptor } from '../../protocol/frames.ts';
import type { ArgumentsOf } from '../../protocol/management.ts';
import type { RunSpec } from '../children/run.ts';
import type { Config, RouteConfig } from '../config/config.ts';

/** Tools of a coordination server that claim routes call; a run has no business with them. */
const WORK_TOOL = /^(work\.|lease\.)/;

/** Writes the specification of each run from the configuration and what is connected now. */
export class RunFactory {
  private readonly scopes = new WeakMap<RouteConfig, (name: string) => boolean>();

  /**
   * @param config the configuration in force, asked for each run
   * @param tools every tool of every live server, asked for each run
   */
  constructor(
    private readonly config: () => Config,
    private readonly tools: () => readonly ToolDescriptor[],
  ) {}

  /** The root task of `once`, `loop` and `schedule`. */
  root(runId: string, traceparent: string): RunSpec {
    const { instruction, outputContract } = this.config();
    return {
      runId,
      kind: 'run',
      instruction: instruction ?? '',
      event: null,
      tools: this.scope(null),
      limits: this.limits(),
      outputContract,
      traceparent,
      route: null,
    };
  }

  /** A run an operator asked for. */
  operator(request: ArgumentsOf<'subagent.spawn'>, runId: string, traceparent: string): RunSpec {
    const limits = this.limits();
    const within = request.tools === undefined ? null : picomatch([...request.tools]);
    return {
      ...this.root(runId, traceparent),
      instruction: request.instruction,
      tools: this.scope(null).filter(({ name }) => within?.(name) ?? true),
      limits: {
        ...limits,
        deadline_ms: Math.min(limits.deadline_ms, request.deadline_ms ?? limits.deadline_ms),
      },
      outputContract: request.output_contract ?? null,
      route: 'operator',
    };
  }

  /** One reaction on a spawn route. */
  reaction(
    route: RouteConfig,
    run: {
      readonly runId: string;
      readonly server: string;
      readonly uri: string;
      readonly traceparent: string;
    },
  ): RunSpec {
    return {
      ...this.onRoute(route, run.runId, run.traceparent),
      kind: 'run',
      event: { uri: run.uri, server: run.server, sequence: 1 },
    };
  }

  /** A warm session behind a continue route. */
  session(route: RouteConfig, runId: string, traceparent: string): RunSpec {
    return { ...this.onRoute(route, runId, traceparent), kind: 'session', event: null };
  }

  private onRoute(route: RouteConfig, runId: string, traceparent: string): Omit<RunSpec, 'kind' | 'event'> {
    const { instruction, outputContract } = this.config();
    return {
      runId,
      instruction: route.instruction ?? instruction ?? '',
      tools: this.scope(route),
      limits: this.limits(),
      outputContract: route.outputContract ?? outputContract,
      traceparent,
      route: route.name,
    };
  }

  /** What a run may call: the route's globs, or everything that is not coordination. */
  private scope(route: RouteConfig | null): readonly ToolDescriptor[] {
    const inScope = route === null ? null : this.scopeOf(route);
    if (inScope !== null) return this.tools().filter(({ name }) => inScope(name));
    const { routes } = this.config();
    const coordinators = new Set(routes.flatMap(({ claim }) => (claim === null ? [] : [claim.server])));
    return this.tools().filter(({ server, tool }) => !(coordinators.has(server) && WORK_TOOL.test(tool)));
  }

  private scopeOf(route: RouteConfig): ((name: string) => boolean) | null {
    if (route.tools === null) return null;
    let scope = this.scopes.get(route);
    if (scope === undefined) {
      scope = picomatch([...route.tools]);
      this.scopes.set(route, scope);
    }
    return scope;
  }

  private limits(): RunLimits {
    const { limits, mcpServers } = this.config();
    return {
      max_steps: limits.maxSteps,
      max_tokens: limits.maxTokens,
      deadline_ms: limits.deadlineMs,
      tool_timeout_ms: Math.max(60_000, ...mcpServers.map((server) => server.timeoutMs)),
    };
  }
}
