import { fileURLToPath } from 'node:url';
import { execa } from 'execa';

/** The bundled command line. */
export const AGENTD = fileURLToPath(new URL('../../dist/agentd.js', import.meta.url));

/** One parsed telemetry line. */
export type Line = Readonly<Record<string, unknown>> & { readonly event?: string };

export interface Exit {
  readonly code: number | null;
  readonly signal: string | null;
}

/** Lines kept of each process, for error messages. */
const KEPT_LINES = 200;

function start(
  program: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  detached: boolean,
) {
  return execa(process.execPath, [program, ...args], {
    env: { PATH: process.env.PATH ?? '', HOME: process.env.HOME ?? '', ...env },
    extendEnv: false,
    stdin: 'ignore',
    buffer: false,
    reject: false,
    detached,
    // A drain takes the time its configuration gives it, and its exit code is of interest.
    forceKillAfterDelay: false,
  });
}

/** A real agentd process whose telemetry is read line by line. */
export class AgentdProcess {
  readonly exited: Promise<Exit>;
  private readonly subprocess: ReturnType<typeof start>;
  private readonly listeners = new Set<(line: Line) => void>();
  private readonly kept: string[] = [];
  private exit: Exit | null = null;
  stdout = '';

  /**
   * @param name for messages
   * @param options `detached`: in a process group of its own, out of reach of a terminal's Ctrl-C;
   *   `program`: another build of the command line
   * @param env added to PATH and HOME; nothing else is inherited, so that a caller's AGENT_* variables
   *   cannot change what is started
   */
  constructor(
    readonly name: string,
    args: readonly string[],
    env: Readonly<Record<string, string>> = {},
    options: { readonly detached?: boolean; readonly program?: string } = {},
  ) {
    this.subprocess = start(options.program ?? AGENTD, args, env, options.detached ?? false);
    this.subprocess.stdout.on('data', (chunk: Buffer) => {
      this.stdout += chunk.toString();
    });
    let rest = '';
    this.subprocess.stderr.on('data', (chunk: Buffer) => {
      const lines = (rest + chunk.toString()).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) this.take(line);
    });
    this.exited = this.subprocess.then((result) => {
      if (rest !== '') this.take(rest);
      this.exit = { code: result.exitCode ?? null, signal: result.signal ?? null };
      return this.exit;
    });
  }

  get pid(): number {
    const { pid } = this.subprocess;
    if (pid === undefined) throw new Error(`${this.name} could not be started`);
    return pid;
  }

  get running(): boolean {
    return this.exit === null;
  }

  /** The last lines it wrote on stderr. */
  get tail(): string {
    return this.kept.join('\n');
  }

  onLine(listener: (line: Line) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /**
   * Resolves with the first line that `matches`.
   *
   * @throws Error with the process's last lines when it ends first, or after `timeoutMs`
   */
  async line(what: string, matches: (line: Line) => boolean, timeoutMs = 30_000): Promise<Line> {
    let stop = (): void => undefined;
    let timer: NodeJS.Timeout | undefined;
    try {
      return await new Promise<Line>((resolve, reject) => {
        const fail = (why: string): void =>
          reject(new Error(`${this.name}: ${why} before ${what}\n${this.tail}`));
        stop = this.onLine((line) => {
          if (matches(line)) resolve(line);
        });
        timer = setTimeout(() => fail(`nothing for ${timeoutMs} ms`), timeoutMs);
        void this.exited.then(({ code, signal }) => fail(`ended (${signal ?? code})`));
      });
    } finally {
      stop();
      clearTimeout(timer);
    }
  }

  kill(signal: NodeJS.Signals): void {
    this.subprocess.kill(signal);
  }

  private take(text: string): void {
    if (text.trim() === '') return;
    this.kept.push(text);
    if (this.kept.length > KEPT_LINES) this.kept.shift();
    let line: Line;
    try {
      line = JSON.parse(text) as Line;
    } catch {
      return; // a line for people
    }
    for (const listener of this.listeners) listener(line);
  }
}
