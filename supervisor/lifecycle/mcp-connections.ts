import { AGENT_VERSION } from '../../protocol/versions.ts';
import { shardLabel } from '../config/shard.ts';
import type { ClaimTarget, LeaseCalls } from '../gates/lease-keeper.ts';
import { PeerSet } from '../mcp/peer-set.ts';
import type { Peer, Peers } from '../mcp/peers.ts';
import { requireWorkTools } from '../mcp/required-tools.ts';
import { ResourceLeases } from '../mcp/resource-lease.ts';
import { createToolBroker } from '../mcp/tool-broker.ts';
import { WorkClient } from '../mcp/work-client.ts';
import { newTraceparent } from '../telemetry/trace.ts';
import { type Connections, type ConnectionsInput, unknownServer } from './connections.ts';
import { WatchList, watchPlan } from './watch-plan.ts';

/** Longest look at a resource before its claim, ms. */
const DESCRIBE_MS = 10_000;

/** The connections of a supervisor that has MCP servers. Loaded only then. */
export function connected({
  config,
  clock,
  log,
  metrics,
  instance,
  emit,
  traces,
}: ConnectionsInput): Connections {
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
  const timeouts = new Map(config.mcpServers.map(({ name, timeoutMs }) => [name, timeoutMs]));
  const broker = createToolBroker({
    peers,
    log,
    metrics,
    clock,
    instance,
    logContent: config.observability.logContent,
    timeoutOf: (server) => timeouts.get(server),
    ...(traces === null ? {} : { traced: traces.toolCall.bind(traces) }),
  });
  const caller = { peers, instance, shard: shardLabel(config.shard) };
  let configured = watchPlan(config);
  const byOperator = new WatchList();
  configured.each((server, match) => peers.watch(server, match));
  const work = new WorkClient(caller);
  return {
    start: async () => {
      await peers.start();
      requireWorkTools(peers, config);
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
    watch: (server, match) => {
      peers.watch(server, match);
      byOperator.add(server, match);
    },
    unwatch: (server, match) => {
      peers.unwatch(server, match);
      byOperator.delete(server, match);
    },
    read: (server, uri) => readFrom(peers, server, uri),
    prepare: async (to, { added, changed }) => {
      const prepared = await peers.prepare([...added, ...changed]);
      const connectionOf = (name: string): Peer | undefined =>
        prepared.find((member) => member.name === name)?.connection ?? peers.get(name);
      try {
        requireWorkTools({ get: connectionOf }, to);
      } catch (error) {
        await peers.abandon(prepared);
        throw error;
      }
      return {
        commit: (runs) => {
          const names = to.mcpServers.map(({ name }) => name);
          const wanted = watchPlan(to);
          for (const { name, timeoutMs } of to.mcpServers) timeouts.set(name, timeoutMs);
          peers.exchange(names, prepared, runs);
          byOperator.keep(names);
          for (const list of [wanted, byOperator]) list.each((server, match) => peers.watch(server, match));
          configured.each((server, match) => {
            const gone =
              !names.includes(server) || wanted.has(server, match) || byOperator.has(server, match);
            if (!gone) peers.unwatch(server, match);
          });
          configured = wanted;
        },
        abandon: () => peers.abandon(prepared),
      };
    },
    reread: (which) => peers.reread(which),
    sweep: (underWay) => peers.sweep(underWay),
    disarm: () => peers.disarm(),
    close: (budgetMs) => peers.close(budgetMs),
  };
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
