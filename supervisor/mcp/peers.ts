import type { ToolDescriptor } from '../../protocol/frames.ts';

/** What the rest of the supervisor sees of MCP servers. */

/** The outcome of a `tools/call` that was answered. A transport failure throws instead. */
export interface CallResult {
  readonly isError: boolean;
  /** The text parts, joined with newlines. */
  readonly text: string;
  readonly structured: unknown;
}

export interface CallOptions {
  readonly meta?: Readonly<Record<string, string>>;
  /** Longest without an answer or progress, ms. Always finite (invariant 5). */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
  readonly onProgress?: (note: string) => void;
}

/** What `resources/list` says of one resource. */
export interface ResourceInfo {
  readonly uri: string;
  readonly name: string;
  readonly mimeType: string | null;
  readonly size: number | null;
  /** RFC 3339, from the resource's annotations. */
  readonly lastModified: string | null;
  readonly meta: Readonly<Record<string, unknown>>;
}

export interface Peer {
  readonly name: string;
  readonly tags: readonly string[];
  readonly state: 'connecting' | 'live' | 'lost' | 'retrying';
  /** The raw tool names the server lists; refreshed on `tools/list_changed` and reconnect. */
  readonly toolNames: readonly string[];
  /**
   * @throws AgentdError MCP_UNAVAILABLE (not connected or the connection broke), MCP_TIMEOUT, or
   *   MCP_PROTOCOL (the server answered with a JSON-RPC error)
   */
  callTool(tool: string, args: Record<string, unknown>, options: CallOptions): Promise<CallResult>;
  readResource(
    uri: string,
    options: CallOptions,
  ): Promise<{ readonly text: string; readonly mimeType: string | null; readonly info: ResourceInfo | null }>;
  listResources(options: CallOptions): Promise<readonly ResourceInfo[]>;
  /** Waits for the connection; false when it is not live after `timeoutMs`, was given up, or `signal` fired. */
  whenLive(timeoutMs: number, signal?: AbortSignal): Promise<boolean>;
}

/** What a peer tells the reactor. */
export type PeerMessage =
  | { readonly type: 'peer.up'; readonly server: string; readonly first: boolean }
  | { readonly type: 'peer.down'; readonly server: string; readonly reason: string }
  /** A stdio server's breaker opened, or a required server stayed away: it will not come back. */
  | { readonly type: 'peer.failed'; readonly server: string; readonly reason: string }
  | {
      readonly type: 'resource.updated';
      readonly server: string;
      readonly uri: string;
      /** `reread`: synthesised after (re)connect; `listed`: a watched glob gained the resource. */
      readonly cause: 'notification' | 'reread' | 'listed';
      /** Monotonic ms at which it was heard. */
      readonly at: number;
    }
  /** Whether every subscription of a server is in force: a deaf connection makes readiness false. */
  | {
      readonly type: 'subscriptions';
      readonly server: string;
      readonly active: number;
      readonly complete: boolean;
    };

/** All connections of one supervisor. */
export interface Peers {
  /**
   * Connects to every server and subscribes to what is watched.
   *
   * @throws AgentdError MCP_UNAVAILABLE (exit 6) naming the required server that cannot be reached
   */
  start(): Promise<void>;
  /**
   * @param runId for whom: a run that began before the server was changed or removed keeps the
   *   connection it began with
   */
  get(name: string, runId?: string): Peer | undefined;
  readonly all: readonly Peer[];
  /** Every tool of every live server, named for the model. */
  tools(): readonly ToolDescriptor[];
  /** Watch an exact URI or a glob on a server; (re)subscribes for the life of the connection. */
  watch(server: string, match: string): void;
  unwatch(server: string, match: string): void;
  /** Stops listening (drain step 1): no further messages, calls still work. */
  disarm(): void;
  /** Closes every connection, waiting at most `budgetMs`. */
  close(budgetMs: number): Promise<void>;
}
