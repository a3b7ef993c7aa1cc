import { AgentdError } from '../../protocol/errors.ts';
import type { ToolDescriptor } from '../../protocol/frames.ts';
import type { McpServerConfig } from '../config/config.ts';
import type { Clock } from '../reactor/clock.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { serverAddress } from './address.ts';
import { Connection } from './connection.ts';
import { type ConnectionTimings, DEFAULT_TIMINGS } from './connection-options.ts';
import type { Peer, PeerMessage, Peers } from './peers.ts';
import { retryForEver, retryGoverned } from './retry-policy.ts';
import { modelNames } from './tool-names.ts';

export interface PeerSetOptions {
  readonly servers: readonly McpServerConfig[];
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly emit: (message: PeerMessage) => void;
  /** The supervising instance. */
  readonly instance: string;
  /** Version of the product, told to servers in the handshake. */
  readonly version: string;
  readonly tlsCa: string | null;
  /** In [0, 1). Default Math.random. */
  readonly random?: () => number;
  /** How long start() keeps trying to reach the servers, ms. Default 10 s. */
  readonly startBudgetMs?: number;
  readonly timings?: Partial<ConnectionTimings>;
}

/** Longest description of a tool that is passed on to the model, characters. */
const MAX_DESCRIPTION = 8_192;

/** All MCP connections of one supervisor. */
export class PeerSet implements Peers {
  private readonly connections = new Map<string, Connection>();
  private readonly active = new Map<string, number>();
  private armed = true;

  constructor(private readonly options: PeerSetOptions) {
    const { clock, metrics, instance, version, tlsCa } = options;
    const random = options.random ?? Math.random;
    const log = options.log.as({ comp: 'mcp' });
    for (const config of options.servers) {
      const stdio = config.transport.kind === 'stdio';
      metrics.set('agent_mcp_up', 0, { server: config.name });
      this.connections.set(
        config.name,
        new Connection({
          config,
          instance,
          client: { name: 'agentd', version },
          tlsCa,
          clock,
          log,
          metrics,
          random,
          emit: (message) => this.deliver(message),
          retry: stdio ? retryGoverned(clock, random, config.required) : retryForEver(random),
          timings: { ...DEFAULT_TIMINGS, ...options.timings },
        }),
      );
    }
  }

  async start(): Promise<void> {
    const budget = this.options.startBudgetMs ?? 10_000;
    const settled = [...this.connections.values()].map(async (connection) => {
      connection.start();
      // An optional server gets one attempt before the start goes on without it.
      if (this.config(connection).required) await this.reached(connection, budget);
      else await connection.changed(budget);
    });
    await Promise.all(settled);
    for (const connection of this.connections.values()) {
      if (this.config(connection).required && connection.state !== 'live') {
        throw this.unavailable(connection, budget);
      }
    }
  }

  /** Waits until the server is reached, cannot be reached by waiting, or the budget is spent. */
  private async reached(connection: Connection, budgetMs: number): Promise<void> {
    const end = this.options.clock.now() + budgetMs;
    for (;;) {
      const left = end - this.options.clock.now();
      if (connection.state === 'live' || connection.ended || left <= 0) return;
      if (connection.failure !== null && isFinal(connection.failure)) return;
      await connection.changed(left);
    }
  }

  get(name: string): Peer | undefined {
    return this.connections.get(name);
  }

  get all(): readonly Peer[] {
    return [...this.connections.values()];
  }

  tools(): readonly ToolDescriptor[] {
    // Named over all known tools, so that a name does not change while another server is away.
    const known = [...this.connections.values()].flatMap((connection) =>
      connection.tools.map((tool) => ({
        connection,
        server: connection.name,
        tool: tool.name,
        listed: tool,
      })),
    );
    const names = modelNames(known);
    const descriptors: ToolDescriptor[] = [];
    for (const [index, { connection, server, tool, listed }] of known.entries()) {
      if (connection.state !== 'live') continue;
      descriptors.push({
        name: names[index] ?? '',
        server,
        tool,
        description: (listed.description ?? listed.title ?? '').slice(0, MAX_DESCRIPTION),
        input_schema: listed.inputSchema,
      });
    }
    return descriptors;
  }

  watch(server: string, match: string): void {
    this.named(server).subscriptions.watch(match);
  }

  unwatch(server: string, match: string): void {
    this.named(server).subscriptions.unwatch(match);
  }

  disarm(): void {
    this.armed = false;
  }

  async close(budgetMs: number): Promise<void> {
    this.armed = false;
    await Promise.all([...this.connections.values()].map((connection) => connection.close(budgetMs)));
  }

  private named(server: string): Connection {
    const connection = this.connections.get(server);
    if (connection !== undefined) return connection;
    const known = [...this.connections.keys()].join(', ');
    throw new AgentdError(
      'CONFIG_INVALID',
      `no MCP server is named ${server}${known === '' ? '' : `; there are ${known}`}`,
    );
  }

  private config(connection: Connection): McpServerConfig {
    const config = this.options.servers.find(({ name }) => name === connection.name);
    if (config === undefined) throw new Error(`connection ${connection.name} has no configuration`);
    return config;
  }

  private deliver(message: PeerMessage): void {
    if (message.type === 'subscriptions') {
      this.active.set(message.server, message.active);
      let total = 0;
      for (const count of this.active.values()) total += count;
      this.options.metrics.set('agent_subscriptions_active', total);
    }
    if (this.armed) this.options.emit(message);
  }

  private unavailable(connection: Connection, budgetMs: number): AgentdError {
    const { name } = connection;
    const address = serverAddress(this.config(connection).transport);
    const failure = connection.failure;
    // A secret that cannot be read is a fault of the configuration, not of the server.
    if (failure?.kind === 'configuration') return failure;
    const reason = failure?.message ?? `it did not answer within ${budgetMs} ms`;
    return new AgentdError('MCP_UNAVAILABLE', `cannot reach MCP server ${name} at ${address}: ${reason}`, {
      exitCode: 6,
      cause: failure,
      remedy: `Start ${name}, correct its address or command, or set required: false to begin without it.`,
    });
  }
}

/** Waiting does not help: a secret that cannot be read, or one that the server refuses. */
function isFinal(failure: AgentdError): boolean {
  return failure.kind === 'configuration' || failure.code === 'MCP_UNAUTHORIZED';
}
