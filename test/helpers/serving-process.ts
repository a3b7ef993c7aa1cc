import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { startAgentd } from './run-agentd.ts';

/** A verb that serves until it is told to stop, as a real process. */
export interface ServingProcess {
  /** Of its MCP endpoint. */
  readonly url: string;
  readonly process: ChildProcess;
  /** Everything it logged so far. */
  readonly log: readonly Record<string, unknown>[];
  /** Sends a signal and resolves when the process has ended. */
  stop(signal?: NodeJS.Signals): Promise<{ readonly code: number | null; readonly signal: string | null }>;
}

/** Starts a serving verb and waits for the `proc.ready` line that says where it listens. */
export async function startServing(args: readonly string[]): Promise<ServingProcess> {
  const child = startAgentd([...args, '--log-format', 'json']);
  const log: Record<string, unknown>[] = [];
  const other: string[] = [];
  const exited: Promise<unknown[]> = once(child, 'exit');
  const url = await new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stderr ?? process.stdin }).on('line', (line) => {
      if (!line.startsWith('{')) {
        other.push(line);
        return;
      }
      const event = JSON.parse(line) as Record<string, unknown>;
      log.push(event);
      if (event.event === 'proc.ready') resolve(String(event.url));
    });
    child.once('exit', (code) => reject(new Error(`${args[0]} ended with ${code}: ${other.join(' ')}`)));
  });
  return {
    url,
    process: child,
    log,
    stop: async (signal = 'SIGTERM') => {
      if (child.exitCode === null && child.signalCode === null) {
        child.kill(signal);
        await exited;
      }
      return { code: child.exitCode, signal: child.signalCode };
    },
  };
}
