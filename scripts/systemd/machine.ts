import { type Container, until } from './container.ts';

/** A line of the journal, as far as the checks read it. */
export interface JournalLine {
  readonly priority: number;
  readonly text: string;
  /** The event line in it, if it is one of ours. */
  readonly event: Readonly<Record<string, unknown>> | null;
}

export interface UnitState {
  readonly active: string;
  readonly sub: string;
  readonly result: string;
  readonly mainPid: number;
  /** Exit code of the last main process. */
  readonly exitStatus: number;
  readonly restarts: number;
  readonly status: string;
}

export const SHARDS = 4;
export const shard = (index: number): string => `agentd-shard@${index}.service`;
export const ALL_SHARDS = Array.from({ length: SHARDS }, (_, index) => shard(index));
const INBOX_URL = 'http://127.0.0.1:7412/mcp';

/** What the checks ask of the machine in the container. */
export class Machine {
  private documents = 0;

  constructor(readonly container: Container) {}

  async systemctl(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await this.container.run('systemctl', ...args);
    if (code !== 0) throw new Error(`systemctl ${args.join(' ')}: exit ${code}: ${stderr.trim()}`);
    return stdout.trim();
  }

  async state(unit: string): Promise<UnitState> {
    const names = 'ActiveState,SubState,Result,MainPID,ExecMainStatus,NRestarts,StatusText';
    const lines = (await this.systemctl('show', unit, `--property=${names}`)).split('\n');
    const value = (name: string): string =>
      lines.find((line) => line.startsWith(`${name}=`))?.slice(name.length + 1) ?? '';
    return {
      active: value('ActiveState'),
      sub: value('SubState'),
      result: value('Result'),
      mainPid: Number(value('MainPID')),
      exitStatus: Number(value('ExecMainStatus')),
      restarts: Number(value('NRestarts')),
      status: value('StatusText'),
    };
  }

  /** Waits until the state of a unit satisfies `wanted`. */
  async reached(unit: string, what: string, wanted: (state: UnitState) => boolean): Promise<UnitState> {
    let seen: UnitState | undefined;
    try {
      return await until(`${unit} to be ${what}`, 90_000, async () => {
        seen = await this.state(unit);
        return wanted(seen) ? seen : undefined;
      });
    } catch (error) {
      throw new Error(`${unit} is not ${what}: ${JSON.stringify(seen)}`, { cause: error });
    }
  }

  /** A place in the journal, to read on from. */
  async now(): Promise<string> {
    return this.container.shell(
      'journalctl --sync; journalctl -q -n 0 --show-cursor | sed -n "s/^-- cursor: //p"',
    );
  }

  async journal(unit: string, cursor?: string): Promise<JournalLine[]> {
    const from = cursor === undefined ? '' : `--after-cursor='${cursor}'`;
    const text = await this.container.shell(`journalctl --sync; journalctl -a -o json -u '${unit}' ${from}`);
    return text
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => {
        const entry = JSON.parse(line) as { PRIORITY?: string; MESSAGE?: string };
        const message = entry.MESSAGE ?? '';
        let event: JournalLine['event'] = null;
        try {
          event = JSON.parse(message) as Record<string, unknown>;
        } catch {
          // a line for people
        }
        return { priority: Number(entry.PRIORITY), text: message, event };
      });
  }

  /** Pids in the cgroup of a unit, its sub-groups included. */
  async processes(unit: string): Promise<number[]> {
    const group = await this.systemctl('show', unit, '--property=ControlGroup', '--value');
    if (group === '') return [];
    const text = await this.container.shell(
      `cat $(find '/sys/fs/cgroup${group}' -name cgroup.procs 2>/dev/null) /dev/null`,
    );
    return text.split('\n').filter(Boolean).map(Number);
  }

  async alive(pids: readonly number[]): Promise<number[]> {
    const text = await this.container.shell(
      pids.map((pid) => `[ ! -d /proc/${pid} ] || echo ${pid}`).join('; ') || 'true',
    );
    return text.split('\n').filter(Boolean).map(Number);
  }

  /** Puts documents into the inbox. */
  async submit(count: number): Promise<void> {
    const first = this.documents;
    this.documents += count;
    await this.container.shell(
      `cd /var/lib/agentd-inbox/; for i in $(seq ${first} ${this.documents - 1}); do ` +
        `echo "Document $i" > .new; chmod 644 .new; mv .new "document-$i.txt"; done`,
    );
  }

  async tally(): Promise<{ items: number; duplicates: number; lost: string[] }> {
    const { code, stdout, stderr } = await this.container.beside('./inside.ts', 'tally', INBOX_URL);
    if (code !== 0) throw new Error(`tally: ${stderr.trim()}`);
    return JSON.parse(stdout) as { items: number; duplicates: number; lost: string[] };
  }

  /** Waits until every document has its result, and says how many had more than one. */
  async finished(): Promise<{ items: number; duplicates: number }> {
    const { items, duplicates } = await until('every document to have a result', 120_000, async () => {
      const tally = await this.tally();
      return tally.items === this.documents && tally.lost.length === 0 ? tally : undefined;
    });
    return { items, duplicates };
  }

  /** Waits until a unit's status says that children run. */
  async working(unit: string): Promise<UnitState> {
    return this.reached(unit, 'working', ({ status }) => /, [1-9]\d* running/.test(status));
  }

  /** A drop-in until the next boot; an empty text takes it away. */
  async dropIn(unit: string, text: string): Promise<void> {
    const file = `/run/systemd/system/${unit}.d/90-proof.conf`;
    await this.container.shell(
      text === ''
        ? `rm -f '${file}'`
        : `mkdir -p '${file.replace(/\/[^/]+$/, '')}'; printf '%s\n' '${text}' > '${file}'`,
    );
    await this.systemctl('daemon-reload');
  }
}

/** @throws Error saying what does not hold */
export function holds(condition: boolean, what: string): asserts condition {
  if (!condition) throw new Error(`does not hold: ${what}`);
}
