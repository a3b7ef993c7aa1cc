import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startHealth } from '../../../supervisor/surface/health.ts';
import { eventually } from '../../helpers/eventually.ts';
import { nullLog } from '../../helpers/null-log.ts';

const FIXTURE = join(import.meta.dirname, '../../fixtures/telemetry/health-process.ts');
let child: ChildProcess | null = null;
let sockets: Socket[] = [];
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'agentd-health-'));
});
afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  sockets = [];
  if (child !== null && child.exitCode === null && child.signalCode === null) {
    const gone = new Promise((resolve) => child?.once('exit', resolve));
    child.kill('SIGKILL');
    await gone;
  }
  child = null;
  rmSync(folder, { recursive: true, force: true });
});

interface Running {
  readonly url: string;
  readonly lines: string[];
  readonly exit: Promise<number | null>;
  send(command: string): void;
}

async function run(staleMs: number, env: Record<string, string> = {}): Promise<Running> {
  const started = spawn(process.execPath, ['--import', 'tsx', FIXTURE], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...process.env, METRICS_ADDR: '127.0.0.1:0', STALE_MS: String(staleMs), ...env },
  });
  child = started;
  const lines: string[] = [];
  createInterface({ input: started.stdout }).on('line', (line) => lines.push(line));
  const exit = new Promise<number | null>((resolve) => started.once('exit', resolve));
  const first = await eventually('the listener', () => lines[0]);
  return {
    url: first.slice('url '.length),
    lines,
    exit,
    send: (command) => void started.stdin.write(`${command}\n`),
  };
}

async function get(url: string): Promise<{ status: number; body: string }> {
  const response = await fetch(url, { signal: AbortSignal.timeout(20_000) });
  return { status: response.status, body: await response.text() };
}

/** A connection that sends `text` and then nothing. */
function hold(url: string, text: string): Promise<Socket> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => {
      socket.write(text);
      resolve(socket);
    });
    socket.on('error', reject);
    sockets.push(socket);
  });
}

describe('the health thread', () => {
  it('answers 503 while the reactor is wedged, counts the stall once, and recovers', async () => {
    const { url, lines, send } = await run(1_000);
    send('ready');
    await eventually('readiness', async () => (await get(`${url}/readyz`)).status === 200);
    expect((await get(`${url}/healthz`)).status).toBe(200);
    const before = (await get(`${url}/metrics`)).body;

    const release = join(folder, 'release');
    send(`block ${release}`);
    const wedged = await eventually('503 from healthz', async () => {
      const answer = await get(`${url}/healthz`);
      return answer.status === 503 && answer;
    });
    expect(JSON.parse(wedged.body)).toMatchObject({ healthy: false });
    const ready = await get(`${url}/readyz`);
    expect(ready.status).toBe(503);
    expect(JSON.parse(ready.body)).toMatchObject({ ready: false, reasons: ['stalled'] });
    // The last rendering, within the deadline, though nobody can render now.
    const stuck = await get(`${url}/metrics`);
    expect(stuck).toEqual({ status: 200, body: before });
    expect(lines).not.toContain('stall');
    writeFileSync(release, '');

    await eventually('200 from healthz again', async () => (await get(`${url}/healthz`)).status === 200);
    await eventually('the stall to be told', () => lines.includes('stall'));
    await eventually('a new rendering', async () => (await get(`${url}/metrics`)).body !== before);
    expect(lines.filter((line) => line === 'stall')).toHaveLength(1);
  });

  it('says why it is not ready: starting, then draining; healthz and metrics go on', async () => {
    const { url, send } = await run(60_000);
    const starting = await get(`${url}/readyz`);
    expect(starting.status).toBe(503);
    expect(JSON.parse(starting.body)).toMatchObject({ ready: false, reasons: ['starting'] });
    send('ready');
    await eventually('200 from readyz', async () => (await get(`${url}/readyz`)).status === 200);
    send('drain');
    const draining = await eventually('503 from readyz', async () => {
      const answer = await get(`${url}/readyz`);
      return answer.status === 503 && answer;
    });
    expect(JSON.parse(draining.body)).toMatchObject({ reasons: ['draining'] });
    expect((await get(`${url}/healthz`)).status).toBe(200);
    expect((await get(`${url}/metrics`)).body).toMatch(/^renderings \d+\n$/);
  });

  it('ends in time with an idle keep-alive client and a half-sent request open', async () => {
    const { url, lines, exit, send } = await run(60_000);
    const idle = await hold(url, 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await new Promise((resolve) => idle.once('data', resolve));
    await hold(url, 'GET /metrics HTTP/1.1\r\nHo');
    const start = performance.now();
    send('close 400');
    expect(await exit).toBe(0);
    expect(lines).toContain('closed');
    // keep-alive is 5 s and a slow request may take as long; neither may count here.
    expect(performance.now() - start).toBeLessThan(4_000);
  });

  it('lets a fresh probe through however many connections others hold open', async () => {
    const { url } = await run(60_000);
    await Promise.all(
      Array.from({ length: 500 }, (_, i) => hold(url, i % 2 === 0 ? '' : 'GET /healthz HTTP/1.1\r\nX: ')),
    );
    for (let i = 0; i < 5; i++) expect((await get(`${url}/healthz`)).status).toBe(200);
  });

  it('refuses other methods, unknown paths, foreign hosts and origins', async () => {
    const { url } = await run(60_000);
    const status = async (path: string, init: RequestInit) => (await fetch(url + path, init)).status;
    expect(await status('/healthz', { method: 'POST', body: 'x' })).toBe(405);
    expect(await status('/healthz', { method: 'HEAD' })).toBe(200);
    expect(await status('/constructor', {})).toBe(404);
    expect(await status('/healthz', { headers: { origin: 'http://evil.example' } })).toBe(403);
    const rebound = await hold(url, 'GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n');
    const answer = await new Promise<Buffer>((resolve) => rebound.once('data', resolve));
    expect(answer.toString()).toMatch(/^HTTP\/1\.1 403 /);
  });

  it('keeps the health file true, also at the end, and leaves nothing beside it', async () => {
    const path = join(folder, 'health.json');
    const { send, exit } = await run(60_000, { HEALTH_FILE: path });
    const read = () => JSON.parse(readFileSync(path, 'utf8'));
    expect(read()).toMatchObject({ healthy: true, ready: false, reasons: ['starting'] });
    send('ready');
    await eventually('a ready health file', () => read().ready === true);
    send('drain');
    await eventually(
      'a draining health file',
      () => read().healthy === true && read().reasons.includes('draining'),
    );
    send('close 1000');
    expect(await exit).toBe(0);
    expect(read()).toMatchObject({ healthy: false, ready: false, reasons: ['stopped'] });
    expect(readdirSync(folder)).toEqual(['health.json']);
  });

  it('writes the verdict of a wedged reactor to the health file', async () => {
    const path = join(folder, 'health.json');
    const { send } = await run(500, { HEALTH_FILE: path });
    const release = join(folder, 'release');
    send(`block ${release}`);
    const read = () => JSON.parse(readFileSync(path, 'utf8'));
    await eventually('an unhealthy health file', () => read().healthy === false);
    writeFileSync(release, '');
    await eventually('a healthy health file', () => read().healthy === true);
  });
});

describe('starting the health thread', () => {
  const options = {
    healthFile: null,
    renderMetrics: () => Promise.resolve(''),
    onStall: () => {},
    log: nullLog,
  };

  it('is a configuration error with exit 2 when the port is taken', async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    const address = other.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    await expect(startHealth({ ...options, metricsAddr: `127.0.0.1:${port}` })).rejects.toMatchObject({
      code: 'ADDRESS_IN_USE',
      exitCode: 2,
      message: `cannot serve metrics on 127.0.0.1:${port}: the port is in use`,
    });
    await new Promise((resolve) => other.close(resolve));
  });

  it('is a configuration error when the address is none', async () => {
    for (const metricsAddr of ['nonsense', '127.0.0.1', '127.0.0.1:99999', '192.0.2.1:0']) {
      await expect(startHealth({ ...options, metricsAddr })).rejects.toMatchObject({ exitCode: 2 });
    }
  });

  it('starts no thread when nothing is to be served', async () => {
    const health = await startHealth({ ...options, metricsAddr: null });
    expect(health.url).toBeNull();
    health.beat();
    await health.close(0);
  });
});
