import type { ModelBlock, ModelTarget, ToolDescriptor } from '../../protocol/frames.ts';
import type { Clock } from '../reactor/clock.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { AgentRun } from './agent-run.ts';
import type { CgroupOptions } from './cgroup.ts';
import type { ChannelLimits } from './channel.ts';
import type { Inspection } from './inspection.ts';
import type { CallTool, RunMessage, RunOutcome } from './run.ts';
import type { SupervisorTimings } from './timings.ts';

/** The model block of a run, and where each of its endpoints stands in the configuration. */
export interface ModelChoice {
  readonly block: ModelBlock;
  readonly configured: readonly number[];
}

/** One model call, its endpoint by its place in the configuration. */
export interface ReportedModelCall {
  readonly endpoint: number;
  readonly model: string;
  readonly ok: boolean;
  readonly reason: 'unreachable' | 'auth' | 'timeout' | '5xx' | 'other' | undefined;
  readonly durMs: number;
  readonly tokensIn: number;
  readonly tokensOut: number;
  /** The span the endpoint was told of. */
  readonly spanId?: string | undefined;
}

/** What may change while the supervisor runs; a run keeps what it began with. */
export interface ChildSettings {
  readonly limits: {
    readonly maxDepth: number;
    readonly maxChildren: number;
    readonly maxTotalSubagents: number;
    readonly treeTokens: number;
    readonly noProgressMs: number;
    readonly childMemoryMaxBytes: number | null;
  };
  readonly telemetry: {
    readonly instance: string;
    readonly logLevel: string;
    readonly logContent: boolean;
    /** Free text of children goes into the log in full instead of as a sample. */
    readonly aggregateLogs?: boolean;
  };
}

export interface ChildSupervisorOptions extends ChildSettings {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  /** The child program. It is run as it is, never through a shell. */
  readonly command: readonly [string, ...string[]];
  /** The supervisor's environment; children get an allow-listed part of it. */
  readonly env: NodeJS.ProcessEnv;
  /** The agent to debug; the command has to come with its arguments (inspection.ts). */
  readonly inspect?: Inspection | null;
  readonly callTool: CallTool;
  /** Asked for each run, so that tokens are read late. A throw fails that run alone. */
  readonly model: () => ModelChoice;
  /** The endpoint that children without a run hold a connection to; null: none. */
  readonly heldModel?: () => ModelTarget | null;
  /** Every model call a child reports. */
  readonly modelCall?: (call: ReportedModelCall, run: AgentRun) => void;
  /** Every run that has ended, those of subagents included. */
  readonly settled?: (run: AgentRun, outcome: RunOutcome) => void;
  readonly emit: (message: RunMessage) => void;
  /** In [0, 1). */
  readonly random?: () => number;
  readonly timings?: Partial<SupervisorTimings>;
  readonly channelLimits?: ChannelLimits;
  /** Gives each child a cgroup of its own, where one is delegated. */
  readonly cgroup?: CgroupOptions | null;
  /** Says why a scope is not allowed in one run (Rule of Two), or null. */
  readonly forbidden?: (tools: readonly ToolDescriptor[]) => string | null;
  /** `agent://subagent/{handle}` has changed. */
  readonly subagentChanged?: (handle: string) => void;
}
