import { AgentdError } from '../../protocol/errors.ts';
import type { ToolDescriptor } from '../../protocol/frames.ts';
import type { McpServerConfig } from '../config/config.ts';
import type { Clock } from '../reactor/clock.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { serverAddress } from './address.ts';
import type { Connection } from './connection.ts';
import type { ConnectionTimings } from './connection-options.ts';
import { Member } from './member.ts';
import type { Peer, PeerMessage, Peers } from './peers.ts';
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
/** How long closing a connection nobody needs may take, ms. */
const ABANDON_MS = 5_000;

/** All MCP connections of one supervisor. */
export class PeerSet implements Peers {
  private members = new Map<string, Member>();
  /** Changed or removed, and kept for the runs that began before. */
  private readonly retired = new Map<Member, ReadonlySet<string>>();
  private readonly active = new Map<string, number>();
  private armed = true;

  constructor(private readonly options: PeerSetOptions) {
    for (const config of options.servers) {
      const member = this.member(config);
      this.members.set(config.name, member);
      member.speak();
    }
  }

  start(): Promise<void> {
    return this.reachAll([...this.members.values()]);
  }

  /**
   * Connects to servers that are to take part, new ones or others in place of present ones.
   *
   * @throws AgentdError MCP_UNAVAILABLE naming a required one that cannot be reached; none is left open
   */
  async prepare(servers: readonly McpServerConfig[]): Promise<readonly Member[]> {
    const members = servers.map((config) => this.member(config));
    try {
      await this.reachAll(members);
    } catch (error) {
      await this.abandon(members);
      throw error;
    }
    return members;
  }

  /** Closes what was prepared and is not wanted after all. */
  async abandon(members: readonly Member[]): Promise<void> {
    await Promise.all(members.map(({ connection }) => connection.close(ABANDON_MS)));
  }

  /**
   * From here on these are the servers, in this order: prepared ones take the place of their
   * namesakes. What is replaced or left out stays open for `runs`, which began with it.
   */
  exchange(names: readonly string[], prepared: readonly Member[], runs: ReadonlySet<string>): void {
    const before = this.members;
    const fresh = new Map(prepared.map((member) => [member.name, member]));
    this.members = new Map();
    for (const name of names) {
      const member = fresh.get(name) ?? before.get(name);
      if (member !== undefined) this.members.set(name, member);
    }
    for (const [name, old] of before) {
      if (this.members.get(name) === old) continue;
      old.hush();
      this.retired.set(old, runs);
      this.deliver({ type: 'subscriptions', server: name, active: 0, complete: true });
      if (!this.members.has(name)) this.options.metrics.remove('agent_mcp_up', { server: name });
    }
    for (const member of prepared) member.speak();
  }

  /** Closes what was replaced or left out once none of the runs it stayed open for is under way. */
  sweep(underWay: (runId: string) => boolean): void {
    for (const [member, runs] of this.retired) {
      if ([...runs].some(underWay)) continue;
      this.retired.delete(member);
      const msg = 'the configuration no longer has it, and no run needs it any more';
      this.options.log.as({ comp: 'mcp' }).info('mcp.disconnect', { server: member.name, msg });
      void member.connection.close(ABANDON_MS);
    }
  }

  private member(config: McpServerConfig): Member {
    return new Member(config, this.options, (message) => this.deliver(message));
  }

  private async reachAll(members: readonly Member[]): Promise<void> {
    const budget = this.options.startBudgetMs ?? 10_000;
    const settled = members.map(async ({ connection, config }) => {
      connection.start();
      // An optional server gets one attempt before the start goes on without it.
      if (config.required) await this.reached(connection, budget);
      else await connection.changed(budget);
    });
    await Promise.all(settled);
    for (const member of members) {
      if (member.config.required && member.connection.state !== 'live') throw unavailable(member, budget);
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

  get(name: string, runId?: string): Peer | undefined {
    if (runId !== undefined) {
      for (const [member, runs] of this.retired) {
        if (member.name === name && runs.has(runId)) return member.connection;
      }
    }
    return this.members.get(name)?.connection;
  }

  get all(): readonly Peer[] {
    return this.connections;
  }

  tools(): readonly ToolDescriptor[] {
    // Named over all known tools, so that a name does not change while another server is away.
    const known = this.connections.flatMap((connection) =>
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
    const all = [...this.members.values(), ...this.retired.keys()];
    await Promise.all(all.map(({ connection }) => connection.close(budgetMs)));
  }

  /** Announces every resource that is watched and passes the test as if it had changed. */
  reread(which: (server: string, uri: string) => boolean): void {
    for (const { name, connection } of this.members.values()) {
      connection.subscriptions.reread((uri) => which(name, uri));
    }
  }

  private get connections(): readonly Connection[] {
    return [...this.members.values()].map(({ connection }) => connection);
  }

  private named(server: string): Connection {
    const member = this.members.get(server);
    if (member !== undefined) return member.connection;
    const known = [...this.members.keys()].join(', ');
    throw new AgentdError(
      'CONFIG_INVALID',
      `no MCP server is named ${server}${known === '' ? '' : `; there are ${known}`}`,
    );
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
}

function unavailable({ name, config, connection }: Member, budgetMs: number): AgentdError {
  const { failure } = connection;
  // A secret that cannot be read is a fault of the configuration, not of the server.
  if (failure?.kind === 'configuration') return failure;
  const address = serverAddress(config.transport);
  const reason = failure?.message ?? `it did not answer within ${budgetMs} ms`;
  return new AgentdError('MCP_UNAVAILABLE', `cannot reach MCP server ${name} at ${address}: ${reason}`, {
    exitCode: 6,
    cause: failure,
    remedy: `Start ${name}, correct its address or command, or set required: false to begin without it.`,
  });
}

/** Waiting does not help: a secret that cannot be read, or one that the server refuses. */
function isFinal(failure: AgentdError): boolean {
  return failure.kind === 'configuration' || failure.code === 'MCP_UNAUTHORIZED';
}
