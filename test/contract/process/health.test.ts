import { readFileSync } from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { FixtureServer } from '../../fixtures/mcp/fixture-server.ts';
import { startModelServer } from '../../fixtures/model-server.ts';
import { eventually } from '../../helpers/eventually.ts';
import { Binary } from '../support/binary.ts';
import { figureOf } from '../support/exposition.ts';
import { expectContractLines } from '../support/lines.ts';
import { probe, scrape } from '../support/scrape.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** The probes of a real supervisor, polled from outside through its life. */
const folder = temporaryFolder();
const METRICS = ['--metrics-addr', '127.0.0.1:0'];
const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean();
});

function supervise(args: readonly string[]): Binary {
  const supervisor = new Binary(['supervise', '--instruction', 'x', ...METRICS, ...args]);
  cleanups.push(() => supervisor.stop());
  return supervisor;
}
function script(name: string, turns: readonly Record<string, unknown>[]): string {
  return `script:${folder.file(`${name}.yaml`, stringify({ turns }))}`;
}
const urlOf = async (supervisor: Binary): Promise<string> => String((await supervisor.ready()).metrics_url);

interface Verdict {
  readonly status: number;
  readonly reasons: readonly string[];
}
async function readyz(url: string): Promise<Verdict> {
  const { status, body, type } = await probe(url, '/readyz');
  const document = JSON.parse(body);
  expect(type).toContain('application/json');
  expect(document.ready).toBe(status === 200);
  expect(document.reasons.length > 0).toBe(status === 503);
  return { status, reasons: document.reasons };
}
const reason = (url: string, wanted: string): Promise<unknown> =>
  eventually(`the reason ${wanted}`, async () => (await readyz(url)).reasons.includes(wanted));
const ready = (url: string): Promise<unknown> =>
  eventually('readiness', async () => (await readyz(url)).status === 200);

describe('the probes', () => {
  it('through a drain (H23): alive and measured to the end, not ready from the signal on', async () => {
    const healthFile = folder.path('health.json');
    const supervisor = supervise([
      ...['--interval', '300ms', '--intelligence', script('spin', [{ spin: true }])],
      ...['--drain-timeout', '6s', '--health-file', healthFile],
    ]);
    const url = await urlOf(supervisor);
    await ready(url);
    await supervisor.line('a run', ({ event }) => event === 'loop.start');
    expect(JSON.parse(readFileSync(healthFile, 'utf8'))).toMatchObject({ healthy: true });
    supervisor.kill('SIGTERM');
    await supervisor.line('the drain', ({ event }) => event === 'drain.start');
    const seen = {
      rounds: 0,
      alive: new Set<number>(),
      verdicts: new Set<string>(),
      draining: new Set<number>(),
    };
    while (supervisor.named('drain.done').length === 0 && supervisor.running) {
      try {
        const [alive, verdict, families] = await Promise.all([
          probe(url, '/healthz'),
          readyz(url),
          scrape(url),
        ]);
        seen.alive.add(alive.status);
        seen.verdicts.add(`${verdict.status} ${verdict.reasons.join()}`);
        seen.draining.add(figureOf(families, 'agent_draining'));
        seen.rounds += 1;
      } catch (error) {
        // Only the very end may cut a probe off.
        await eventually(
          'the end of the drain',
          () => supervisor.named('drain.done').length > 0,
          2_000,
        ).catch(() => {
          throw error;
        });
      }
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    expect(seen.rounds).toBeGreaterThan(5);
    expect([...seen.alive]).toEqual([200]);
    expect([...seen.verdicts]).toEqual(['503 draining']);
    expect([...seen.draining]).toEqual([1]);
    expect(await supervisor.ended).toEqual({ code: 0, signal: null });
    expect(JSON.parse(readFileSync(healthFile, 'utf8'))).toMatchObject({
      healthy: false,
      ready: false,
      reasons: ['stopped'],
    });
    expectContractLines(supervisor);
  });

  it('say starting until every connection is there', async () => {
    const source = await FixtureServer.start({ resources: { 'a:///x': 'x' } });
    cleanups.push(() => source.stop());
    source.subscribeFaults.set('a:///x', 'hang');
    const healthFile = folder.path('starting.json');
    supervise([
      ...['--mcp', `src=${source.url}`, '--subscribe', 'src:a:///x', '--intelligence', 'script:final'],
      ...['--health-file', healthFile],
    ]);
    const starting = await eventually('the health file', () => {
      const document = JSON.parse(readFileSync(healthFile, 'utf8'));
      return document.reasons.includes('starting') && document;
    });
    expect(starting).toMatchObject({ healthy: true, ready: false });
  });

  it('say deaf_subscription while a server is gone, and ready when it hears again', async () => {
    const source = await FixtureServer.start({ resources: { 'a:///x': 'x' } });
    cleanups.push(() => source.stop());
    const supervisor = supervise([
      '--mcp',
      `src=${source.url}`,
      '--subscribe',
      'src:a:///x',
      '--intelligence',
      'script:final',
    ]);
    const url = await urlOf(supervisor);
    await ready(url);
    await source.stop();
    await reason(url, 'deaf_subscription');
    expect(JSON.parse((await probe(url, '/readyz')).body).deaf_servers).toEqual(['src']);
    expect((await probe(url, '/healthz')).status).toBe(200);
    expect(figureOf(await scrape(url), 'agent_ready')).toBe(0);
    await source.listen();
    await ready(url);
    expect(await supervisor.stop()).toEqual({ code: 0, signal: null });
    expectContractLines(supervisor);
  });

  it('say intelligence_down while every model endpoint refuses, and stay alive', async () => {
    const first = await startModelServer([{ kind: 'status', status: 401 }]);
    const second = await startModelServer([{ kind: 'status', status: 401 }]);
    cleanups.push(first.close, second.close);
    const supervisor = supervise([
      '--interval',
      '200ms',
      '--intelligence',
      `${first.origin},${second.origin}`,
    ]);
    const url = await urlOf(supervisor);
    await reason(url, 'intelligence_down');
    const families = await scrape(url);
    expect(figureOf(families, 'agent_intel_all_down')).toBe(1);
    expect(figureOf(families, 'agent_intel_up')).toBe(0);
    expect(figureOf(families, 'agent_intel_errors_total', { reason: 'auth' })).toBeGreaterThan(1);
    expect((await probe(url, '/healthz')).status).toBe(200);
    expect(await supervisor.stop()).toEqual({ code: 0, signal: null });
    expectContractLines(supervisor);
  });
});
