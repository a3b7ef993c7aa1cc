import { EXIT } from '../../protocol/exit-codes.ts';
import { AgentdProcess, type Exit, type Line } from './agentd-process.ts';

/** Longest a process may take to be ready, ms: the machine may be busy. */
const READY_MS = 120_000;
/** How often a supervisor is started that found a server too busy to answer in time. */
const STARTS = 20;

export interface FleetOptions {
  /** The folder whose files are the work. */
  readonly documents: string;
  /** A folder of our own for the ledger. */
  readonly state: string;
  /** One supervisor per entry: its flags. */
  readonly supervisors: readonly (readonly string[])[];
  /** Flags of every supervisor. */
  readonly common: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** In process groups of their own: a Ctrl-C reaches only whoever started the fleet. */
  readonly detached?: boolean;
  /** The command line of each supervisor, where it is not the built one. */
  readonly programs?: readonly (string | undefined)[];
  /** Further flags of the coordination server. */
  readonly coordinate?: readonly string[];
  /** The coordination server's database. Default: a SQLite file in `state`. */
  readonly database?: string;
}

/** A coordination server, an inbox and supervisors, all real processes on loopback. */
export class Fleet {
  readonly supervisors: AgentdProcess[] = [];
  readonly metricsUrls: (string | undefined)[] = [];
  readonly managementUrls: (string | undefined)[] = [];
  private readonly listeners = new Set<(supervisor: number, line: Line) => void>();

  private constructor(
    private readonly options: FleetOptions,
    public coordinator: AgentdProcess,
    public inbox: AgentdProcess,
    readonly coordUrl: string,
    readonly inboxUrl: string,
  ) {}

  /** Starts the two servers, and returns when both listen. Supervisors are started apart. */
  static async start(options: FleetOptions): Promise<Fleet> {
    const coordinator = startCoordinator(options, 'http://127.0.0.1:0');
    const inbox = startInbox(options, 'http://127.0.0.1:0');
    try {
      const [coordUrl, inboxUrl] = await Promise.all([readyUrl(coordinator), readyUrl(inbox)]);
      return new Fleet(options, coordinator, inbox, coordUrl, inboxUrl);
    } catch (error) {
      coordinator.kill('SIGKILL');
      inbox.kill('SIGKILL');
      throw error;
    }
  }

  /** Kills a server with -9 and starts it again where it was. */
  async restartServer(which: 'coordinator' | 'inbox'): Promise<void> {
    const old = this[which];
    old.kill('SIGKILL');
    await old.exited;
    const listen = new URL(which === 'inbox' ? this.inboxUrl : this.coordUrl).origin;
    this[which] =
      which === 'inbox' ? startInbox(this.options, listen) : startCoordinator(this.options, listen);
    await readyUrl(this[which]);
  }

  onLine(listener: (supervisor: number, line: Line) => void): void {
    this.listeners.add(listener);
  }

  /** Starts every supervisor and returns when all are ready. */
  async startSupervisors(): Promise<void> {
    const count = this.options.supervisors.length;
    await Promise.all(Array.from({ length: count }, (_, index) => this.startSupervisor(index)));
  }

  /**
   * Starts supervisor `index` (again) and returns when it is ready. As a service manager would, it
   * starts one again that a busy server kept waiting for too long (exit 6).
   */
  async startSupervisor(index: number): Promise<AgentdProcess> {
    for (let starts = 1; ; starts++) {
      const process = this.launch(index);
      try {
        await this.ready(index, process);
        return process;
      } catch (error) {
        const unreached = !process.running && (await process.exited).code === EXIT.MCP;
        if (!unreached || starts === STARTS) throw error;
      }
    }
  }

  private launch(index: number): AgentdProcess {
    const flags = this.options.supervisors[index] ?? [];
    const program = this.options.programs?.[index];
    const process = new AgentdProcess(
      `supervisor ${index}`,
      ['supervise', ...this.options.common, ...flags, '--log-format', 'json'],
      { ...this.options.env, COORD_URL: this.coordUrl, INBOX_URL: this.inboxUrl },
      { ...this.options, ...(program === undefined ? {} : { program }) },
    );
    this.supervisors[index] = process;
    process.onLine((line) => {
      for (const listener of this.listeners) listener(index, line);
    });
    return process;
  }

  private async ready(index: number, process: AgentdProcess): Promise<void> {
    const ready = await process.line('proc.ready', (line) => line.event === 'proc.ready', READY_MS);
    this.metricsUrls[index] = typeof ready.metrics_url === 'string' ? ready.metrics_url : undefined;
    this.managementUrls[index] = typeof ready.management_url === 'string' ? ready.management_url : undefined;
  }

  /** Rejects when a process of the fleet ends by itself; never resolves. */
  async anyFailure(): Promise<never> {
    const all = [...this.supervisors, this.coordinator, this.inbox];
    const first = await Promise.race(all.map(async (process) => ({ process, exit: await process.exited })));
    const { name, tail } = first.process;
    throw new Error(`${name} ended (${first.exit.signal ?? first.exit.code}):\n${tail}`);
  }

  /** What each supervisor left to other shards, from its metrics. */
  async skipped(): Promise<readonly number[]> {
    return Promise.all(
      this.metricsUrls.map(async (url) => {
        if (url === undefined) return Number.NaN;
        const text = await (await fetch(new URL('/metrics', url))).text();
        return Number(/^agent_shard_skipped_total (\d+)/m.exec(text)?.[1] ?? Number.NaN);
      }),
    );
  }

  /** Drains the supervisors, then the servers; the supervisors' ends, in order. */
  async stop(): Promise<readonly Exit[]> {
    for (const supervisor of this.supervisors) supervisor.kill('SIGTERM');
    const exits = await Promise.all(this.supervisors.map((supervisor) => supervisor.exited));
    for (const server of [this.coordinator, this.inbox]) server.kill('SIGTERM');
    await Promise.all([this.coordinator.exited, this.inbox.exited]);
    return exits;
  }

  /** Kills whatever is left. For cleaning up after a failure. */
  kill(): void {
    for (const one of [...this.supervisors, this.coordinator, this.inbox])
      if (one.running) one.kill('SIGKILL');
  }
}

function startCoordinator(options: FleetOptions, listen: string): AgentdProcess {
  const database = options.database ?? `${options.state}/ledger.sqlite`;
  const args = ['coordinate', '--listen', listen, '--db', database, ...(options.coordinate ?? [])];
  return new AgentdProcess('coordinate', [...args, '--log-format', 'json'], options.env, options);
}

function startInbox(options: FleetOptions, listen: string): AgentdProcess {
  const args = ['inbox', options.documents, '--listen', listen, '--log-format', 'json'];
  return new AgentdProcess('inbox', args, options.env, options);
}

async function readyUrl(process: AgentdProcess): Promise<string> {
  const line = await process.line('proc.ready', ({ event }) => event === 'proc.ready', READY_MS);
  if (typeof line.url !== 'string') throw new Error(`${process.name}: its proc.ready line has no url`);
  return line.url;
}
