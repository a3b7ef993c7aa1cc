import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const MAIN = fileURLToPath(new URL('../../supervisor/main.ts', import.meta.url));
const TSX = fileURLToPath(import.meta.resolve('tsx'));

export interface Ended {
  readonly code: number | null;
  readonly signal: string | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

/** Starts the command line from its sources, in an environment of nothing but `env` and PATH. */
export function startAgentd(args: readonly string[], { env = {}, cwd }: RunOptions = {}): ChildProcess {
  return spawn(process.execPath, ['--import', TSX, MAIN, ...args], {
    env: { PATH: process.env.PATH ?? '', ...env },
    ...(cwd === undefined ? {} : { cwd }),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

/** Runs the command line to its end. */
export async function runAgentd(args: readonly string[], options: RunOptions = {}): Promise<Ended> {
  const child = startAgentd(args, options);
  const stdout = collect(child.stdout);
  const stderr = collect(child.stderr);
  const [code, signal]: (number | string | null)[] = await once(child, 'close');
  return {
    code: typeof code === 'number' ? code : null,
    signal: typeof signal === 'string' ? signal : null,
    stdout: stdout(),
    stderr: stderr(),
  };
}

function collect(stream: NodeJS.ReadableStream | null): () => string {
  const chunks: Buffer[] = [];
  stream?.on('data', (chunk: Buffer) => chunks.push(chunk));
  return () => Buffer.concat(chunks).toString('utf8');
}
