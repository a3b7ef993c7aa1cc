import { parentPort, workerData } from 'node:worker_threads';
import { STARTING } from '../lifecycle/readiness.ts';
import { HealthFile } from './health-file.ts';
import type { FromHealthThread, HealthThreadData, ToHealthThread } from './health-messages.ts';
import { type HealthAnswer, HealthServer, json, plain } from './health-server.ts';
import { Heartbeat, HeartbeatWatch } from './heartbeat.ts';
import { isLoopback } from './listen-url.ts';

/**
 * The health thread: answers /healthz, /readyz and /metrics and writes the health file without the
 * reactor's help, so that a wedged reactor gets a 503 and not a timeout (contract, section 11).
 */
const data: HealthThreadData = workerData;
const FIRST_RENDER_MS = 1_000;
const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

const heartbeat = new Heartbeat(data.heartbeat);
const watch = new HeartbeatWatch(data.staleMs, data.lookMs * 8, heartbeat.read(), performance.now());
let readiness = STARTING;
let stallMs = 0;
let rendering = '';
let waiting: (() => void)[] = [];

const tell = (message: FromHealthThread): void => parentPort?.postMessage(message);

function look() {
  const verdict = watch.look(heartbeat.read(), performance.now());
  if (verdict.stale) stallMs = verdict.ageMs;
  if (verdict.recovered) tell({ type: 'stall.ended', stallMs: Math.round(stallMs) });
  return verdict;
}

function healthz(): HealthAnswer {
  const { stale, ageMs } = look();
  return json(stale ? 503 : 200, { healthy: !stale, heartbeat_age_ms: Math.round(ageMs) });
}

function ready() {
  const { stale } = look();
  // What a wedged reactor said last is no longer true.
  return stale ? { ...readiness, ready: false, reasons: [...readiness.reasons, 'stalled'] } : readiness;
}

function readyz(): HealthAnswer {
  const verdict = ready();
  return json(verdict.ready ? 200 : 503, verdict);
}

/** One rendering serves all scrapes that wait; past the deadline the last one has to do. */
async function metrics(): Promise<HealthAnswer> {
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, data.renderDeadlineMs);
    waiting.push(() => {
      clearTimeout(timer);
      resolve();
    });
    if (waiting.length === 1) tell({ type: 'render' });
  });
  if (rendering === '') return plain(503, 'the supervisor is busy and has not rendered its metrics yet');
  return { status: 200, type: METRICS_TYPE, body: rendering };
}

const file =
  data.healthFile === null
    ? null
    : new HealthFile(data.healthFile, (message) => tell({ type: 'file.failed', message }));

function writeFile(): void {
  const { stale, ageMs } = look();
  file?.write({
    ts: new Date().toISOString(),
    pid: process.pid,
    healthy: !stale,
    heartbeat_age_ms: Math.round(ageMs),
    ...ready(),
  });
}

async function main(): Promise<void> {
  const { listen } = data;
  const server =
    listen === null
      ? null
      : new HealthServer(
          { '/healthz': healthz, '/readyz': readyz, '/metrics': metrics },
          isLoopback(listen.host),
        );
  const looking = setInterval(look, data.lookMs);
  const writing = file === null ? undefined : setInterval(writeFile, data.fileMs);

  parentPort?.on('message', (message: ToHealthThread) => {
    switch (message.type) {
      case 'readiness':
        readiness = message.readiness;
        break;
      case 'rendered':
        // A failed rendering is empty: the last good one stays.
        if (message.text !== '') rendering = message.text;
        for (const done of waiting) done();
        waiting = [];
        break;
      case 'close':
        void close(message.budgetMs);
        break;
    }
  });

  async function close(budgetMs: number): Promise<void> {
    clearInterval(looking);
    clearInterval(writing);
    await server?.close(budgetMs);
    file?.write({
      ts: new Date().toISOString(),
      pid: process.pid,
      healthy: false,
      ...readiness,
      ready: false,
      reasons: ['stopped'],
    });
    parentPort?.close();
  }

  if (file !== null) writeFile();
  if (server === null || listen === null) {
    tell({ type: 'listening', url: null });
    return;
  }
  try {
    const port = await server.listen(listen.host, listen.port);
    const host = listen.host.includes(':') ? `[${listen.host}]` : listen.host;
    tell({ type: 'listening', url: `http://${host}:${port}` });
    // Once start-up is over, so that the first scrape need not wait for the exposition library.
    setTimeout(() => tell({ type: 'render' }), FIRST_RENDER_MS).unref();
  } catch (error) {
    const { code = 'unknown', message } = error as NodeJS.ErrnoException;
    tell({ type: 'listen.failed', code, message });
    await close(0);
  }
}

void main();
