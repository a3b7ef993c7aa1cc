import { AgentdError } from '../../protocol/errors.ts';
import type { ToolDescriptor } from '../../protocol/frames.ts';
import { AGENT_VERSION } from '../../protocol/versions.ts';
import type { CallTool } from '../children/run.ts';
import type { Config } from '../config/config.ts';
import type { ClaimTarget, LeaseCalls } from '../gates/lease-keeper.ts';
import type { Peer, PeerMessage, Peers, ResourceInfo } from '../mcp/peers.ts';
import type { Clock } from '../reactor/clock.ts';
import type { PulledItem } from '../routing/standby.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { newTraceparent } from '../telemetry/trace.ts';

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
  disarm(): void;
  close(budgetMs: number): Promise<void>;
}

interface ConnectionsInput {
  readonly config: Config;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly instance: string;
  readonly emit: (message: PeerMessage) => void;
}

/** Longest look at a resource before its claim, ms. */
const DESCRIBE_MS = 10_000;

/** A run without MCP servers loads nothing of MCP: a one-shot's start is measured in milliseconds. */
export async function connections(input: ConnectionsInput): Promise<Connections> {
  return input.config.mcpServers.length === 0 ? NONE : connected(input);
}

async function connected({
  config,
  clock,
  log,
  metrics,
  instance,
  emit,
}: ConnectionsInput): Promise<Connections> {
  const { PeerSet } = await import('../mcp/peer-set.ts');
  const { createToolBroker } = await import('../mcp/tool-broker.ts');
  const { WorkClient } = await import('../mcp/work-client.ts');
  const { ResourceLeases } = await import('../mcp/resource-lease.ts');
  const { requireTools, toolsForStyle } = await import('../mcp/required-tools.ts');
  const { shard, routes } = config;
  const peers = new PeerSet({
    servers: config.mcpServers,
    clock,
    log,
    metrics,
    emit,
    instance,
    version: AGENT_VERSION,
    tlsCa: config.tlsCa,
  });
  const broker = createToolBroker({
    peers,
    log,
    metrics,
    clock,
    instance,
    logContent: config.observability.logContent,
  });
  const caller = { peers, instance, shard: shard.count > 1 ? `${shard.index}/${shard.count}` : null };
  // A resource that carries its own lease is claimed where it is watched.
  const coordinators = new Set(
    routes.flatMap(({ claim }) => (claim === null || claim.style === 'resource' ? [] : [claim.server])),
  );
  const sources = config.mcpServers.map(({ name }) => name).filter((name) => !coordinators.has(name));
  for (const { server, match } of config.subscriptions) {
    // What is watched on any server is watched on the sources, not where the claims are asked for.
    for (const name of server === null ? (sources.length > 0 ? sources : coordinators) : [server]) {
      peers.watch(name, match);
    }
  }
  if (config.standby !== null) peers.watch(config.standby.assignFrom.server, config.standby.assignFrom.uri);
  const work = new WorkClient(caller);
  return {
    start: async () => {
      await peers.start();
      if (config.standby !== null)
        requireTools(peers, config.standby.assignFrom.server, toolsForStyle('tool'));
      for (const { claim } of routes) {
        if (claim !== null) requireTools(peers, claim.server, toolsForStyle(claim.style));
      }
    },
    callTool: broker.call,
    calls: byStyle({ tool: work, resource: new ResourceLeases({ ...caller, clock }) }),
    tools: () => peers.tools(),
    describe: async (server, uri) => {
      const peer = peers.get(server);
      if (peer === undefined) return null;
      return (await peer.readResource(uri, { timeoutMs: DESCRIBE_MS })).info;
    },
    claimNext: async (server, ttlMs, max) => {
      if (peers.get(server)?.toolNames.includes('work.claim_next') !== true) return null;
      const sentAt = clock.now();
      const request = { ttlMs, max, traceparent: newTraceparent() };
      const reply = await work.claimNext(server, request, Math.min(DESCRIBE_MS, ttlMs));
      if (reply.kind === 'failed') return [];
      return reply.leases.map((lease) => ({
        uri: lease.item,
        claimKey: lease.claim_key,
        grant: { leaseId: lease.lease_id, expiresInMs: lease.expires_in_ms, sentAt },
      }));
    },
    pending: async (server, uri) => {
      try {
        return pendingItems((await readFrom(peers, server, uri)).text);
      } catch {
        return []; // asked again soon
      }
    },
    forget: (runId) => broker.forget(runId),
    peers: () => peers.all,
    watch: (server, match) => peers.watch(server, match),
    unwatch: (server, match) => peers.unwatch(server, match),
    read: (server, uri) => readFrom(peers, server, uri),
    disarm: () => peers.disarm(),
    close: (budgetMs) => peers.close(budgetMs),
  };
}

function unknownServer(server: string): AgentdError {
  return new AgentdError('CONFIG_INVALID', `there is no MCP server named ${server}`, {
    remedy: 'Name a server of the configuration; agent://inventory lists them.',
  });
}

async function readFrom(
  peers: Peers,
  server: string,
  uri: string,
): Promise<{ readonly text: string; readonly mimeType: string | null }> {
  const peer = peers.get(server);
  if (peer === undefined) throw unknownServer(server);
  const { text, mimeType } = await peer.readResource(uri, { timeoutMs: DESCRIBE_MS });
  return { text, mimeType };
}

/** The URIs in the body of a `work://pending`, whoever serves it. */
function pendingItems(text: string): string[] {
  const body: unknown = JSON.parse(text);
  const items = typeof body === 'object' && body !== null && 'items' in body ? body.items : [];
  if (!Array.isArray(items)) return [];
  return items.flatMap((entry: unknown) =>
    typeof entry === 'object' && entry !== null && 'item' in entry && typeof entry.item === 'string'
      ? [entry.item]
      : [],
  );
}

/** Leases of both styles behind one port: each claim says which it is of. */
function byStyle(calls: Readonly<Record<ClaimTarget['style'], LeaseCalls>>): LeaseCalls {
  return {
    claim: (target, ms) => calls[target.style].claim(target, ms),
    renew: (target, leaseId, ms) => calls[target.style].renew(target, leaseId, ms),
    ack: (target, leaseId, result, ms) => calls[target.style].ack(target, leaseId, result, ms),
    release: (target, leaseId, reason, ms) => calls[target.style].release(target, leaseId, reason, ms),
  };
}

const NOT_CONNECTED = { kind: 'failed', error: 'no MCP server is configured' } as const;

/** No servers: nothing to connect to and nothing to call. */
const NONE: Connections = {
  start: () => Promise.resolve(),
  callTool: () => Promise.resolve({ text: 'No tools are configured.', is_error: true }),
  calls: {
    claim: () => Promise.resolve(NOT_CONNECTED),
    renew: () => Promise.resolve(NOT_CONNECTED),
    ack: () => Promise.resolve(NOT_CONNECTED),
    release: () => Promise.resolve(NOT_CONNECTED),
  },
  tools: () => [],
  describe: () => Promise.resolve(null),
  claimNext: () => Promise.resolve([]),
  pending: () => Promise.resolve([]),
  forget: () => undefined,
  peers: () => [],
  watch: () => undefined,
  unwatch: () => undefined,
  read: (server) => Promise.reject(unknownServer(server)),
  disarm: () => undefined,
  close: () => Promise.resolve(),
};
