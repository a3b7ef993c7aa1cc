import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { startAgentd } from './run-agentd.ts';

/** A running `agentd coordinate`. */
export interface CoordinatorProcess {
  /** The MCP endpoint. */
  readonly url: string;
  readonly process: ChildProcess;
  /** Everything it logged so far. */
  readonly log: readonly Record<string, unknown>[];
  /** Sends SIGTERM and resolves when it has ended. */
  stop(): Promise<{ readonly code: number | null; readonly signal: string | null }>;
}

/** Starts `agentd coordinate` on a free loopback port (or with its own --listen) and waits until it is ready. */
export async function startCoordinatorProcess(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<CoordinatorProcess> {
  const listen = args.includes('--listen') ? [] : ['--listen', 'http://127.0.0.1:0'];
  const child = startAgentd(['coordinate', ...listen, '--log-format', 'json', ...args], { env });
  const log: Record<string, unknown>[] = [];
  const exited = once(child, 'exit');
  const url = await new Promise<string>((resolve, reject) => {
    const other: string[] = [];
    createInterface({ input: child.stderr ?? process.stdin }).on('line', (line) => {
      const event = parse(line);
      if (event === null) other.push(line);
      else log.push(event);
      if (event?.event === 'proc.ready') resolve(String(event.url));
    });
    child.once('exit', (code) => reject(new Error(`coordinate ended with ${code}: ${other.join(' ')}`)));
  });
  return {
    url,
    process: child,
    log,
    stop: async () => {
      child.kill('SIGTERM');
      const [code, signal]: (number | string | null)[] = await exited;
      return {
        code: typeof code === 'number' ? code : null,
        signal: typeof signal === 'string' ? signal : null,
      };
    },
  };
}

function parse(line: string): Record<string, unknown> | null {
  try {
    return JSON.parse(line) as Record<string, unknown>;
  } catch {
    return null;
  }
}
