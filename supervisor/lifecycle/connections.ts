import { AgentdError } from '../../protocol/errors.ts';
import type { ToolDescriptor } from '../../protocol/frames.ts';
import type { CallTool } from '../children/run.ts';
import type { Config } from '../config/config.ts';
import type { ServerChanges } from '../config/reload.ts';
import type { LeaseCalls } from '../gates/lease-keeper.ts';
import type { Peer, PeerMessage, ResourceInfo } from '../mcp/peers.ts';
import type { Clock } from '../reactor/clock.ts';
import type { PulledItem } from '../routing/standby.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { Traces } from '../telemetry/traces.ts';

/** What the rest of the supervisor needs of its MCP connections. */
export interface Connections {
  /** @throws AgentdError MCP_UNAVAILABLE (exit 6), COORDINATION_WITHOUT_WORK_TOOLS (exit 2) */
  start(): Promise<void>;
  readonly callTool: CallTool;
  readonly calls: LeaseCalls;
  tools(): readonly ToolDescriptor[];
  describe(server: string, uri: string): Promise<ResourceInfo | null>;
  /** Takes up to `max` items of a coordination server; null when it has no work.claim_next. */
  claimNext(server: string, ttlMs: number, max: number): Promise<readonly PulledItem[] | null>;
  /** URIs a coordination server shows as waiting. */
  pending(server: string, uri: string): Promise<readonly string[]>;
  /** The run is over: what was kept for its calls may go. */
  forget(runId: string): void;
  peers(): readonly Peer[];
  watch(server: string, match: string): void;
  unwatch(server: string, match: string): void;
  /** Reads a resource, within a deadline. @throws AgentdError MCP_* or CONFIG_INVALID */
  read(server: string, uri: string): Promise<{ readonly text: string; readonly mimeType: string | null }>;
  /**
   * Connects to what a new configuration adds or changes, before anything else follows from it.
   *
   * @throws AgentdError MCP_UNAVAILABLE, COORDINATION_WITHOUT_WORK_TOOLS; then nothing has changed
   */
  prepare(config: Config, servers: ServerChanges): Promise<PreparedServers>;
  /** Announces watched resources that pass the test as if they had changed. */
  reread(which: (server: string, uri: string) => boolean): void;
  /** Closes what a reload replaced once no run that began before is under way. */
  sweep(underWay: (runId: string) => boolean): void;
  disarm(): void;
  close(budgetMs: number): Promise<void>;
}

/** Servers of a configuration that is about to come into force: connected, and not used yet. */
export interface PreparedServers {
  /** @param runs run ids and claim keys of what is under way: it keeps the servers it began with */
  commit(runs: ReadonlySet<string>): void;
  abandon(): Promise<void>;
}

export interface ConnectionsInput {
  readonly config: Config;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly instance: string;
  readonly emit: (message: PeerMessage) => void;
  readonly traces: Traces | null;
}

/** The error for a server that is not configured. */
export function unknownServer(server: string): AgentdError {
  return new AgentdError('CONFIG_INVALID', `there is no MCP server named ${server}`, {
    remedy: 'Name a server of the configuration; agent://inventory lists them.',
  });
}
