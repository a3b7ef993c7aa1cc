import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { AGENTD } from '../../../scripts/fleet/agentd-process.ts';
import { eventually } from '../../helpers/eventually.ts';

export interface Exit {
  readonly code: number | null;
  readonly signal: string | null;
}
export type Line = Readonly<Record<string, unknown>>;

/**
 * The built binary as anybody outside sees it: every byte of both streams kept, standard error read
 * as telemetry lines. Its environment is PATH, HOME and what is given.
 */
export class Binary {
  readonly process: ChildProcess;
  /** Telemetry lines so far. */
  readonly lines: Line[] = [];
  /** Lines of standard error that are no JSON: words for people. */
  readonly words: string[] = [];
  readonly ended: Promise<Exit>;
  stdout = '';
  stderr = '';
  private rest = '';

  constructor(
    args: readonly string[],
    env: Readonly<Record<string, string>> = {},
    stdio: StdioOptions = ['ignore', 'pipe', 'pipe'],
  ) {
    this.process = spawn(process.execPath, [AGENTD, ...args], {
      env: {
        PATH: process.env.PATH ?? '',
        HOME: process.env.HOME ?? '',
        AGENT_LOG_FORMAT: 'json',
        ...env,
      },
      stdio,
    });
    this.process.stdout?.on('data', (chunk: Buffer) => {
      this.stdout += chunk.toString();
    });
    this.process.stderr?.on('data', (chunk: Buffer) => this.take(chunk.toString()));
    this.ended = once(this.process, 'close').then(([code, signal]: (number | string | null)[]) => ({
      code: typeof code === 'number' ? code : null,
      signal: typeof signal === 'string' ? signal : null,
    }));
  }

  get pid(): number {
    if (this.process.pid === undefined) throw new Error('the binary could not be started');
    return this.process.pid;
  }

  get running(): boolean {
    return this.process.exitCode === null && this.process.signalCode === null;
  }

  named(event: string): Line[] {
    return this.lines.filter((line) => line.event === event);
  }

  /** The first line that matches, now or later. */
  line(what: string, matches: (line: Line) => boolean, timeoutMs = 30_000): Promise<Line> {
    return eventually(
      `${what} (so far: ${this.words.join(' ')})`,
      () => {
        const found = this.lines.find(matches);
        if (found === undefined && !this.running) throw new Error(`ended before ${what}: ${this.stderr}`);
        return found ?? false;
      },
      timeoutMs,
    );
  }

  /** Its `proc.ready` line. */
  ready(): Promise<Line> {
    return this.line('proc.ready', ({ event }) => event === 'proc.ready');
  }

  kill(signal: NodeJS.Signals): void {
    this.process.kill(signal);
  }

  /** Drains it; kills it when it does not end. */
  async stop(): Promise<Exit> {
    if (this.running) this.kill('SIGTERM');
    const timer = setTimeout(() => this.kill('SIGKILL'), 20_000);
    const exit = await this.ended;
    clearTimeout(timer);
    return exit;
  }

  private take(text: string): void {
    this.stderr += text;
    const lines = (this.rest + text).split('\n');
    this.rest = lines.pop() ?? '';
    for (const line of lines) {
      if (line.startsWith('{')) this.lines.push(JSON.parse(line) as Line);
      else if (line !== '') this.words.push(line);
    }
  }
}

/** Runs the binary to its end. */
export async function runBinary(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Binary & { readonly exit: Exit }> {
  const binary = new Binary(args, env);
  return Object.assign(binary, { exit: await binary.ended });
}
