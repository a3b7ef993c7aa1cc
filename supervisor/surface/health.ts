import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Worker, type WorkerOptions } from 'node:worker_threads';
import { AgentdError } from '../../protocol/errors.ts';
import type { Readiness } from '../lifecycle/readiness.ts';
import type { Log } from '../telemetry/log.ts';
import type { FromHealthThread, HealthThreadData, ToHealthThread } from './health-messages.ts';
import { Heartbeat } from './heartbeat.ts';

export interface HealthOptions {
  /** HOST:PORT of /metrics, /healthz and /readyz; port 0 picks one. Null: no listener. */
  readonly metricsAddr: string | null;
  readonly healthFile: string | null;
  /** Renders the metrics now; called on the reactor's thread for each scrape. */
  readonly renderMetrics: () => Promise<string>;
  /** The reactor was blocked past the limit and has come back. */
  readonly onStall: (stallMs: number) => void;
  readonly log: Log;
  /** A heartbeat older than this is stale, ms. Default 10 s (contract, section 11). */
  readonly staleMs?: number;
  readonly renderDeadlineMs?: number;
}

/** The reactor's end of the health thread. */
export interface Health {
  /** Called on every wake of the reactor, at least once a second. */
  beat(): void;
  setReadiness(readiness: Readiness): void;
  /** Of the listener, with its real port; null without one. */
  readonly url: string | null;
  /** Ends the thread within `budgetMs`, whatever its clients do. */
  close(budgetMs: number): Promise<void>;
}

const STALE_MS = 10_000;
const RENDER_DEADLINE_MS = 2_000;
const FILE_MS = 1_000;

const NO_HEALTH: Health = {
  beat: () => {},
  setReadiness: () => {},
  url: null,
  close: () => Promise.resolve(),
};

/**
 * Starts the health thread; resolves when it listens and the first file is written. Without a
 * listener and a file there is no thread.
 *
 * @throws AgentdError ADDRESS_IN_USE, LISTEN_REFUSED or CONFIG_INVALID, all exit 2
 */
export async function startHealth(options: HealthOptions): Promise<Health> {
  const { metricsAddr, healthFile } = options;
  if (metricsAddr === null && healthFile === null) return NO_HEALTH;
  const heartbeat = new Heartbeat();
  const staleMs = options.staleMs ?? STALE_MS;
  const thread = startThread({
    heartbeat: heartbeat.buffer,
    listen: metricsAddr === null ? null : parseHostPort(metricsAddr),
    healthFile,
    staleMs,
    lookMs: Math.min(500, staleMs / 4),
    renderDeadlineMs: options.renderDeadlineMs ?? RENDER_DEADLINE_MS,
    fileMs: FILE_MS,
  });
  const tell = (message: ToHealthThread): void => thread.postMessage(message);
  const ended = new Promise<void>((resolve) => thread.once('exit', () => resolve()));
  thread.on('message', (message: FromHealthThread) => {
    switch (message.type) {
      case 'render':
        void render(options.renderMetrics).then((text) => tell({ type: 'rendered', text }));
        break;
      case 'stall.ended':
        options.onStall(message.stallMs);
        break;
      case 'file.failed':
        options.log.warn('config.warn', {
          msg: `the health file ${healthFile} cannot be written: ${message.message}`,
        });
        break;
    }
  });
  const url = await listening(thread, metricsAddr ?? '');
  thread.on('error', (error) =>
    options.log.error('config.warn', { msg: `the health thread ended: ${error.message}` }),
  );
  // The thread serves the process; it is no reason for the process to stay.
  thread.unref();
  return {
    beat: () => heartbeat.beat(),
    setReadiness: (readiness) => tell({ type: 'readiness', readiness }),
    url,
    close: async (budgetMs) => {
      thread.ref();
      tell({ type: 'close', budgetMs: budgetMs / 2 });
      let timer: NodeJS.Timeout | undefined;
      await Promise.race([
        ended,
        new Promise((resolve) => {
          timer = setTimeout(resolve, budgetMs);
        }),
      ]);
      clearTimeout(timer);
      await thread.terminate();
    },
  };
}

/** A failed rendering is empty: the thread goes on serving the last good one. */
async function render(renderMetrics: () => Promise<string>): Promise<string> {
  try {
    return await renderMetrics();
  } catch {
    return '';
  }
}

/** HOST:PORT, `[v6]:PORT` or `:PORT` (every address). */
export function parseHostPort(text: string): { host: string; port: number } {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]/\s]*)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (match === null || port > 65_535) {
    throw new AgentdError('CONFIG_INVALID', `cannot serve metrics on "${text}": not HOST:PORT`, {
      remedy: 'Write it as 127.0.0.1:9090, 0.0.0.0:9090 or [::1]:9090.',
    });
  }
  return { host: match[1] ?? (match[2] || '0.0.0.0'), port };
}

function listening(thread: Worker, where: string): Promise<string | null> {
  return new Promise((resolve, reject) => {
    const settle = (act: () => void): void => {
      thread.off('message', onMessage);
      thread.off('error', onError);
      act();
    };
    const onMessage = (message: FromHealthThread): void => {
      if (message.type === 'listening') settle(() => resolve(message.url));
      if (message.type === 'listen.failed') settle(() => reject(listenError(where, message)));
    };
    const onError = (error: Error): void =>
      settle(() =>
        reject(
          new AgentdError('LISTEN_REFUSED', `cannot start the health thread: ${error.message}`, {
            cause: error,
          }),
        ),
      );
    thread.on('message', onMessage);
    thread.on('error', onError);
  });
}

function listenError(where: string, { code, message }: { code: string; message: string }): AgentdError {
  return code === 'EADDRINUSE'
    ? new AgentdError('ADDRESS_IN_USE', `cannot serve metrics on ${where}: the port is in use`)
    : new AgentdError('LISTEN_REFUSED', `cannot serve metrics on ${where}: ${message}`, {
        remedy: 'Choose an address of this machine and a port this user may open.',
      });
}

/** The bundled thread beside the bundled program; from sources, the module itself through tsx. */
function startThread(workerData: HealthThreadData): Worker {
  const options: WorkerOptions = {
    workerData,
    name: 'agentd-health',
    resourceLimits: { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 8 },
  };
  const bundle = fileURLToPath(new URL('./heartbeat-thread.cjs', import.meta.url));
  if (existsSync(bundle)) return new Worker(bundle, options);
  const source = JSON.stringify(new URL('./heartbeat-thread.ts', import.meta.url).href);
  const loader = JSON.stringify(
    new URL('../../node_modules/tsx/dist/esm/api/index.mjs', import.meta.url).href,
  );
  const code = `import(${loader}).then(({ register }) => { register(); return import(${source}); });`;
  return new Worker(code, { ...options, eval: true, execArgv: [] });
}
