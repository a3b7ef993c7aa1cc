import type {
  ArgumentsOf,
  CapacityDocument,
  InventoryDocument,
  OperatorResult,
  SessionDocument,
  StatusDocument,
  SubagentDocument,
  SubagentResultDocument,
} from '../../protocol/management.ts';
import type { CapabilitiesManifest } from '../../protocol/manifest.ts';
import type { RunReport } from '../../protocol/run-report.ts';
import type { EventsPage, EventsQuery } from '../telemetry/event-ring.ts';

/**
 * What the management surface needs of the supervisor. Reads are cheap and answer from memory.
 * Commands go through the reactor and resolve when it has taken them; where they fail they throw
 * an AgentdError, whose message reaches the operator.
 */
export interface ManagementPort {
  capabilities(): CapabilitiesManifest;
  status(): StatusDocument;
  inventory(): InventoryDocument;
  capacity(): CapacityDocument;
  /** Endpoints by number, never by address. */
  intelligence(): Readonly<Record<string, unknown>>;
  /** Prometheus text. */
  metrics(): Promise<string>;
  /** Null when the stream is not served. */
  events(query: EventsQuery): EventsPage | null;
  /** Secrets as references. */
  effectiveConfig(): Readonly<Record<string, unknown>>;
  /** The report of a finished run, or null. */
  run(runId: string): RunReport | null;
  session(id: string): SessionDocument | null;
  subagent(handle: string): SubagentDocument | null;
  /** Null while there is none, or for an unknown handle. */
  result(handle: string): SubagentResultDocument | null;

  drain(deadlineMs: number | null): Promise<OperatorResult>;
  lameDuck(on: boolean): Promise<OperatorResult>;
  pause(): Promise<OperatorResult>;
  resume(): Promise<OperatorResult>;
  /** False when no running subagent has this handle. */
  cancel(handle: string, reason: string | null): Promise<boolean>;
  spawn(request: ArgumentsOf<'subagent.spawn'>): Promise<{ readonly handle: string; readonly runId: string }>;
  /** Wakes the warm session behind the handle with a message. */
  send(handle: string, message: string): Promise<void>;
  watch(server: string, uri: string): Promise<void>;
  unwatch(server: string, uri: string): Promise<void>;
  /** Reads a resource of an MCP server over the supervisor's connection, within its deadline. */
  readResource(
    server: string,
    uri: string,
  ): Promise<{ readonly text: string; readonly mimeType: string | null }>;
  /** Gives this instance an item, as a coordinator does with a standby. */
  assign(server: string, uri: string): Promise<void>;
}
