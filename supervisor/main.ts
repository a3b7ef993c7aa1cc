import { AgentdError, errorMessage } from '../protocol/errors.ts';
import { AGENT_VERSION } from '../protocol/versions.ts';
import type { Host } from './cli/host.ts';
import { flushOutput } from './cli/output.ts';
import { SignalDesk } from './cli/signals.ts';

/** The process: the real host, the last word on errors, and the exit. */

/** Longest the reader of our output may take nothing, ms. */
const OUTPUT_STALL_MS = 30_000;

const signals = new SignalDesk((signal) => raise(signal));
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const)
  process.on(signal, () => signals.arrived(signal));
/** Our result could not be written: unlike telemetry, that is what the process was for. */
let lostOutput: NodeJS.ErrnoException | null = null;
for (const stream of [process.stdout, process.stderr]) {
  // A reader that went away changes nothing: what was done stays done (invariant 10).
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (stream === process.stdout && error.code !== 'EPIPE') lostOutput ??= error;
  });
}
process.on('uncaughtException', (error) => void end(failed(error)));
process.on('unhandledRejection', (error) => void end(failed(error)));

const host: Host = {
  env: process.env,
  cwd: process.cwd(),
  stdout: process.stdout,
  stderr: process.stderr,
  onSignal: (listener) => signals.subscribe(listener),
  toldToEnd: async () => {
    // Since the first line of the program the event loop may not have turned, and signals wait for that.
    await new Promise((resolve) => setImmediate(resolve));
    return signals.toldToEnd;
  },
  raise,
};

void main(process.argv.slice(2));

async function main(args: readonly string[]): Promise<void> {
  let code: number;
  try {
    code = await run(args);
  } catch (error) {
    code = failed(error);
    if ((process.env.NOTIFY_SOCKET ?? '') !== '') {
      const { announceFailure } = await import('./lifecycle/systemd-service.ts');
      await announceFailure(process.env, errorMessage(error));
    }
  }
  await end(code);
}

async function run(args: readonly string[]): Promise<number> {
  if (args.length === 1 && (args[0] === '--version' || args[0] === '-V')) {
    // Nothing of the command line needs to be loaded for this.
    process.stdout.write(`${AGENT_VERSION}\n`);
    return 0;
  }
  const { runProgram } = await import('./cli/program.ts');
  return runProgram(args, host);
}

/** Says in words what went wrong and returns the exit code. No stack trace: it helps nobody who runs this. */
function failed(error: unknown): number {
  if (error instanceof AgentdError) {
    process.stderr.write(`agentd: ${error.message}\n  ${error.remedy}\n`);
    return error.exitCode;
  }
  const text = errorMessage(error).replaceAll('\n', ' ');
  process.stderr.write(
    `agentd: internal error: ${text}; please report it with the command line that led here\n`,
  );
  return 1;
}

async function end(code: number): Promise<void> {
  await Promise.all([
    flushOutput(process.stdout, OUTPUT_STALL_MS),
    flushOutput(process.stderr, OUTPUT_STALL_MS),
  ]);
  if (lostOutput === null) process.exit(code);
  process.stderr.write(
    `agentd: the output could not be written: ${lostOutput.message}\n  Check the disk that stdout goes to.\n`,
  );
  process.exit(code === 0 ? 1 : code);
}

/** As if the signal had never been handled; PID 1 is not killed by its own signal. */
function raise(signal: 'SIGTERM' | 'SIGINT' | 'SIGHUP'): void {
  const code = 128 + { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 }[signal];
  if (process.pid !== 1) {
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  }
  process.exit(code);
}
