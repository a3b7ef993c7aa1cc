import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { type JSONRPCMessage, JSONRPCMessageSchema } from '@modelcontextprotocol/sdk/types.js';
import { AgentdError } from '../../protocol/errors.ts';
import { FrameDecoder } from '../../protocol/ndjson.ts';
import { whyNotRun } from '../children/parent-death.ts';
import { type SupervisedProcess, spawnSupervised } from '../children/supervised-process.ts';
import type { Clock } from '../reactor/clock.ts';
import type { Log } from '../telemetry/log.ts';
import type { LinkEvents } from './link.ts';
import { StderrLines } from './stderr-lines.ts';

export interface StdioServerOptions {
  readonly server: string;
  readonly command: readonly [string, ...string[]];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string | null;
  readonly instance: string;
  /** Cap on one message, and on what may wait for a server that does not read, bytes. */
  readonly maxMessageBytes: number;
  readonly clock: Clock;
  readonly log: Log;
}

/** A stdio MCP server: a supervised child that speaks one JSON-RPC message a line. */
export class StdioTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;

  readonly deaf = null;
  readonly ready: Promise<void> = Promise.resolve();
  private process: SupervisedProcess | null = null;
  private readonly stderr: StderrLines;
  private readonly decoder: FrameDecoder;
  private finished = false;
  private ending: string | null = null;

  constructor(
    private readonly options: StdioServerOptions,
    private readonly events: LinkEvents,
  ) {
    const { server, log, clock } = options;
    this.stderr = new StderrLines(clock, (line) => log.debug('mcp.connect', { server, stderr: line }));
    this.decoder = new FrameDecoder(
      {
        frame: (value) => this.received(value),
        garbage: (sample, reason) =>
          log.debug('mcp.connect', { server, msg: `skipped a line: ${reason}`, sample }),
        overflow: (bytes) => this.fail(`it sent a message of more than ${bytes - 1} bytes`),
      },
      options.maxMessageBytes,
    );
  }

  get epitaph(): string | null {
    return this.ending;
  }

  /** Of the server, for tests and reports; null before it was started. */
  get pid(): number | null {
    return this.process?.pid ?? null;
  }

  /** @throws AgentdError MCP_UNAVAILABLE when the program cannot be started */
  async start(): Promise<void> {
    const { command, env, cwd, instance, log } = this.options;
    const child = spawnSupervised(command, {
      env,
      instance,
      log,
      timings: { cancelGraceMs: 1_000, termGraceMs: 1_000, killWaitMs: 2_000 },
      ...(cwd === null ? {} : { cwd }),
    });
    this.process = child;
    child.stdout.on('data', (chunk: Buffer) => this.decoder.write(chunk));
    child.stderr.on('data', (chunk: Buffer) => this.stderr.feed(chunk));
    void child.drained.then(() => this.stderr.end());
    void Promise.all([child.exited, child.drained]).then(([end]) => {
      const how =
        end.spawnError?.message ??
        (end.signal === null ? `it exited with code ${end.code}` : `it was ended by ${end.signal}`);
      const words =
        end.spawnError === null && this.stderr.last !== null ? `${how}: ${this.stderr.last}` : how;
      this.fail(words);
    });
    if (child.pid !== null) return;
    // Settled at once. Thrown here, it is the reason of the failed connection, instead of a missing answer.
    const { spawnError } = await child.exited;
    throw this.cannotStart(spawnError);
  }

  private cannotStart(cause: AgentdError | null): AgentdError {
    const { server, command, env, cwd } = this.options;
    const missing = whyNotRun(command[0], env.PATH, cwd ?? undefined);
    return new AgentdError(
      'MCP_UNAVAILABLE',
      `MCP server ${server} cannot be started: ${missing ?? cause?.message ?? 'unknown reason'}`,
      {
        exitCode: 6,
        ...(cause === null ? {} : { cause }),
        remedy:
          missing === null
            ? 'Check the limits on processes, memory and open files.'
            : `Install ${command[0]}, or correct the command or cwd of ${server} under mcp.servers (or --mcp).`,
      },
    );
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const child = this.process;
    if (child === null || this.finished || !child.stdin.writable) {
      throw new AgentdError('MCP_UNAVAILABLE', `MCP server ${this.options.server} is not running`);
    }
    if (child.stdin.writableLength > this.options.maxMessageBytes) {
      throw new AgentdError(
        'MCP_UNAVAILABLE',
        `MCP server ${this.options.server} has stopped reading its input`,
      );
    }
    // Not awaited: the answer has its own deadline, and the amount that may wait is bounded above.
    child.stdin.write(`${JSON.stringify(message)}\n`);
  }

  close(): Promise<void> {
    return this.end(4_000);
  }

  /** Stops the server: end of input, SIGTERM, SIGKILL to its group; waits at most `budgetMs`. */
  async end(budgetMs: number): Promise<void> {
    const child = this.process;
    this.conclude(null);
    if (child === null) return;
    child.stop('disconnected', Math.min(1_000, budgetMs / 3));
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(() => {
        child.kill('disconnected');
        resolve();
      }, budgetMs);
    });
    await Promise.race([child.exited, late]);
    clearTimeout(timer);
  }

  private received(value: Record<string, unknown>): void {
    if (this.finished) return;
    const message = JSONRPCMessageSchema.safeParse(value);
    if (!message.success) {
      this.onerror?.(new Error('a line of the server is no JSON-RPC message'));
      return;
    }
    this.events.heard();
    // The SDK handles notifications a microtask later but answers at once: one that was sent before
    // an answer, in the same chunk, must not be overtaken by it.
    if ('method' in message.data) this.onmessage?.(message.data);
    else queueMicrotask(() => this.onmessage?.(message.data));
  }

  private fail(reason: string): void {
    if (this.finished) return;
    this.events.broken(reason);
    this.conclude(reason);
  }

  private conclude(reason: string | null): void {
    if (this.finished) return;
    this.finished = true;
    this.ending = reason;
    this.onclose?.();
  }
}
