import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import {
  type ChildNotification,
  type ChildRequest,
  type FrameFromChild,
  parseFrameFromChild,
  type RunResult,
  type RunStart,
  type SupervisorNotification,
  type ToolOutcome,
} from '../../protocol/frames.ts';
import { encodeFrame, FrameDecoder } from '../../protocol/ndjson.ts';

/** The built child; `npm run build` comes before the tests. */
export const CHILD_PROGRAM = fileURLToPath(new URL('../../dist/child.js', import.meta.url));

/** Generous: a slow machine is not a failure. */
const WAIT_MS = 30_000;
const STDERR_KEPT = 64 * 1024;

export interface DriverOptions {
  /** Default: the built child. */
  readonly command?: readonly [string, ...string[]];
  readonly env?: NodeJS.ProcessEnv;
  readonly cwd?: string;
  /** Answers tool.call and self.call; `null` leaves a request unanswered. Default: echoes the arguments. */
  readonly onRequest?: (request: ChildRequest) => ToolOutcome | null | Promise<ToolOutcome | null>;
}

export interface ChildExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

type ParamsByMethod = { [B in ChildNotification as B['method']]: B['params'] };
type ParamsOf<M extends ChildNotification['method']> = ParamsByMethod[M];

/** A child process and the supervisor's end of its frames, for tests. */
export class DrivenChild {
  readonly frames: FrameFromChild[] = [];
  readonly garbage: string[] = [];
  readonly overflows: number[] = [];
  readonly exited: Promise<ChildExit>;
  stderr = '';
  stderrBytes = 0;
  private readonly process: ChildProcess;
  private readonly listeners = new Set<() => void>();
  private nextPing = 1;

  constructor(private readonly options: DriverOptions = {}) {
    const [file, ...args] = options.command ?? [process.execPath, CHILD_PROGRAM];
    this.process = spawn(file, args, {
      stdio: ['pipe', 'pipe', 'pipe'],
      detached: true,
      env: options.env ?? { PATH: process.env.PATH ?? '' },
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    });
    this.exited = new Promise((resolve, reject) => {
      this.process.once('exit', (code, signal) => resolve({ code, signal }));
      this.process.once('error', reject);
    });
    const decoder = new FrameDecoder({
      frame: (value) => this.take(value),
      garbage: (sample) => this.note(() => this.garbage.push(sample)),
      overflow: (bytes) => this.note(() => this.overflows.push(bytes)),
    });
    this.process.stdout?.on('data', (chunk: Buffer) => decoder.write(chunk));
    this.process.stderr?.on('data', (chunk: Buffer) => {
      this.stderrBytes += chunk.length;
      this.note(() => {
        this.stderr = (this.stderr + chunk.toString()).slice(-STDERR_KEPT);
      });
    });
    this.process.stdout?.once('end', () => setImmediate(() => this.note(() => undefined)));
    this.process.stdin?.on('error', () => undefined);
    this.exited.then(
      () => this.note(() => undefined),
      () => undefined,
    );
  }

  get pid(): number {
    const { pid } = this.process;
    if (pid === undefined) throw new Error('the child was not started');
    return pid;
  }

  send(message: SupervisorNotification): void {
    this.process.stdin?.write(encodeFrame(message));
  }

  /** Writes bytes as they are. */
  write(bytes: string | Buffer): void {
    this.process.stdin?.write(bytes);
  }

  closeStdin(): void {
    this.process.stdin?.end();
  }

  /** Stops or continues reading the child's stdout. */
  setReading(reading: boolean): void {
    if (reading) this.process.stdout?.resume();
    else this.process.stdout?.pause();
  }

  /** Closes the reading end of the child's stdout. */
  breakStdout(): void {
    this.process.stdout?.destroy();
  }

  signal(signal: NodeJS.Signals): void {
    this.process.kill(signal);
  }

  /** Resolves when the child has answered a ping. */
  async ping(timeoutMs = WAIT_MS): Promise<void> {
    const id = 1_000_000 + this.nextPing++;
    this.process.stdin?.write(encodeFrame({ id, method: 'ping' }));
    await this.waitFor(
      'pong',
      (frame) => frame.type === 'response' && frame.body.id === id && 'result' in frame.body,
      timeoutMs,
    );
  }

  /** The first notification of a kind, already seen or still to come, that `accept` takes. */
  async notification<M extends ChildNotification['method']>(
    method: M,
    accept: (params: ParamsOf<M>) => boolean = () => true,
  ): Promise<ParamsOf<M>> {
    const paramsOf = (frame: FrameFromChild): ParamsOf<M> | undefined =>
      frame.type === 'notification' && frame.body.method === method
        ? (frame.body.params as ParamsOf<M>)
        : undefined;
    return this.untilFrame(method, (frame) => {
      const params = paramsOf(frame);
      return params !== undefined && accept(params) ? params : undefined;
    });
  }

  async request(method: ChildRequest['method'], accept: (request: ChildRequest) => boolean = () => true) {
    const frame = await this.waitFor(
      method,
      (candidate) =>
        candidate.type === 'request' && candidate.body.method === method && accept(candidate.body),
    );
    return frame.body as ChildRequest;
  }

  ready(): Promise<ParamsOf<'ready'>> {
    return this.notification('ready');
  }

  result(): Promise<RunResult> {
    return this.notification('run.result');
  }

  respond(id: number, outcome: ToolOutcome): void {
    this.process.stdin?.write(encodeFrame({ id, result: outcome }));
  }

  /** Waits for a frame seen already or still to come. */
  async waitFor(
    what: string,
    accept: (frame: FrameFromChild) => boolean,
    timeoutMs = WAIT_MS,
  ): Promise<FrameFromChild> {
    return this.untilFrame(what, (frame) => (accept(frame) ? frame : undefined), timeoutMs);
  }

  /** Each frame is looked at once, so that waiting through a flood stays cheap. */
  private untilFrame<T>(
    what: string,
    pick: (frame: FrameFromChild) => T | undefined,
    timeoutMs = WAIT_MS,
  ): Promise<T> {
    let next = 0;
    const probe = (): T | undefined => {
      for (let frame = this.frames[next]; frame !== undefined; frame = this.frames[next]) {
        next++;
        const picked = pick(frame);
        if (picked !== undefined) return picked;
      }
      return undefined;
    };
    return this.until(what, probe, timeoutMs);
  }

  /** Waits until `probe` finds something; asked again at every frame, byte of stderr and at exit. */
  until<T>(what: string, probe: () => T | undefined, timeoutMs = WAIT_MS): Promise<T> {
    return new Promise((resolve, reject) => {
      const done = (settle: () => void): void => {
        clearTimeout(timer);
        this.listeners.delete(look);
        settle();
      };
      const look = (): void => {
        const found = probe();
        if (found !== undefined) done(() => resolve(found));
        else if (this.process.exitCode !== null || this.process.signalCode !== null) {
          // Output may still be on its way: give up only when the pipes have ended.
          if (this.process.stdout?.readableEnded ?? true) fail('the child ended');
        }
      };
      const fail = (why: string): void =>
        done(() => reject(new Error(`no ${what}: ${why}; stderr: ${this.stderr.slice(-2000)}`)));
      const timer = setTimeout(() => fail(`nothing within ${timeoutMs} ms`), timeoutMs);
      this.listeners.add(look);
      look();
    });
  }

  /** SIGKILL to the child and its group; resolves when the child is gone and its pipes are closed. */
  async stop(): Promise<void> {
    const { pid } = this.process;
    if (pid === undefined) return;
    try {
      process.kill(-pid, 'SIGKILL');
    } catch {
      // Gone already.
    }
    if (this.process.exitCode === null && this.process.signalCode === null) await once(this.process, 'exit');
    this.process.stdin?.destroy();
    this.process.stdout?.destroy();
    this.process.stderr?.destroy();
  }

  private take(value: Record<string, unknown>): void {
    let frame: FrameFromChild;
    try {
      frame = parseFrameFromChild(value);
    } catch {
      this.note(() => this.garbage.push(JSON.stringify(value).slice(0, 200)));
      return;
    }
    this.note(() => this.frames.push(frame));
    if (frame.type === 'request') void this.reply(frame.body);
  }

  private async reply(request: ChildRequest): Promise<void> {
    const answer = this.options.onRequest ?? echo;
    const outcome = await answer(request);
    if (outcome !== null) this.respond(request.id, outcome);
  }

  private note(change: () => void): void {
    change();
    for (const listener of [...this.listeners]) listener();
  }
}

function echo(request: ChildRequest): ToolOutcome {
  return { text: JSON.stringify(request.params.arguments), is_error: false };
}

/** A run frame for a script, with every part replaceable. */
export function runStart(intelligence: string, overrides: Partial<RunStart> = {}): SupervisorNotification {
  return {
    method: 'run.start',
    params: {
      run_id: 'run-1',
      agent_id: 'agent-1',
      agent_path: '0',
      kind: 'run',
      instruction: 'Do the task.',
      tools: [ECHO_TOOL],
      self_tools: [],
      limits: { max_steps: 50, max_tokens: 200_000, deadline_ms: 60_000, tool_timeout_ms: 60_000 },
      model: { endpoints: [{ url: intelligence }], timeout_ms: 30_000, max_attempts: 3 },
      telemetry: {
        instance: 'test',
        traceparent: '00-0123456789abcdef0123456789abcdef-0123456789abcdef-01',
        log_level: 'debug',
        log_content: false,
      },
      ...overrides,
    },
  };
}

/** A tool the driver answers by repeating its arguments. */
export const ECHO_TOOL = {
  name: 'test__echo',
  server: 'test',
  tool: 'echo',
  description: 'Repeats its arguments.',
  input_schema: { type: 'object' },
};
