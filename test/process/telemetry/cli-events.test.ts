import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import {
  ListResourcesRequestSchema,
  ReadResourceRequestSchema,
  SubscribeRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { afterEach, describe, expect, it } from 'vitest';
import type { EventLine } from '../../../protocol/event-line.ts';
import { eventsCommand } from '../../../supervisor/cli/events.ts';
import type { VerbAction } from '../../../supervisor/cli/host.ts';
import { startHttpServer } from '../../../supervisor/surface/http-server.ts';
import { mcpEndpoint } from '../../../supervisor/surface/mcp-endpoint.ts';
import { ResourceHub } from '../../../supervisor/surface/resource-hub.ts';
import { EventRing, eventsQuery } from '../../../supervisor/telemetry/event-ring.ts';
import { eventually } from '../../helpers/eventually.ts';
import { type FakeHost, fakeHost } from '../../helpers/fake-host.ts';
import { nullLog } from '../../helpers/null-log.ts';

interface Instance {
  readonly url: string;
  emit(fields: Partial<EventLine>): void;
  stop(): Promise<void>;
}
let running: Instance[] = [];
afterEach(async () => {
  await Promise.all(running.map((instance) => instance.stop()));
  running = [];
});

/** A management surface that serves nothing but a ring. */
async function instance(
  url = 'http://127.0.0.1:0',
  capacity = 64,
  subscribable = true,
  bearer?: string,
): Promise<Instance> {
  const ring = new EventRing(capacity);
  const hub = new ResourceHub();
  ring.onAppend(() => hub.notifyUpdated('agent://events'));
  const endpoint = mcpEndpoint({
    hub,
    log: nullLog,
    build: (session) => {
      const server = new Server(
        { name: 'test', version: '1' },
        { capabilities: { resources: { subscribe: true } } },
      );
      server.setRequestHandler(ListResourcesRequestSchema, () => ({ resources: [] }));
      server.setRequestHandler(ReadResourceRequestSchema, ({ params }) => ({
        contents: [
          { uri: params.uri, text: JSON.stringify(ring.read(eventsQuery(new URL(params.uri).searchParams))) },
        ],
      }));
      if (!subscribable) return server;
      server.setRequestHandler(SubscribeRequestSchema, ({ params }) => {
        session.subscribe(params.uri);
        return {};
      });
      return server;
    },
  });
  const http = await startHttpServer({
    url,
    routes: endpoint.routes,
    ...(bearer === undefined ? {} : { bearer: () => bearer }),
    log: nullLog,
  });
  let stopped: Promise<void> | null = null;
  const made: Instance = {
    url: http.url,
    emit: (fields) =>
      ring.append({
        ts: '2026-01-01T00:00:00.000Z',
        level: 'info',
        event: 'loop.step',
        run_id: 'R',
        agent_id: 'sup',
        agent_path: '0',
        comp: 'supervisor',
        pid: 1,
        ...fields,
      }),
    stop: () => {
      stopped ??= Promise.all([endpoint.close(100), http.close(100)]).then(() => undefined);
      return stopped;
    },
  };
  running.push(made);
  return made;
}

function events(host: FakeHost, ...args: string[]): Promise<number> {
  let action: VerbAction | undefined;
  eventsCommand((chosen) => {
    action = chosen;
  }).parse(args, { from: 'user' });
  if (action === undefined) throw new Error('no action');
  return action(host);
}

describe('agentd events', () => {
  it('prints the lines an instance keeps, filtered by level and prefix, and ends', async () => {
    const { url, emit } = await instance();
    emit({ event: 'claim.lost', level: 'warn', msg: 'taken' });
    emit({ event: 'claim.granted' });
    emit({ event: 'drain.start', level: 'warn' });
    const host = fakeHost();
    expect(await events(host, '--url', url, '--level', 'warn', '--event', 'claim.')).toBe(0);
    expect(host.out()).toBe('00:00:00.000 WARN  0      claim.lost       taken\n');
  });

  it('follows several instances, each line with where it is from, until interrupted', async () => {
    const [a, b] = [await instance(), await instance()];
    const host = fakeHost();
    const done = events(host, '--follow', '--json', '--url', a.url, '--url', b.url);
    a.emit({ n: 1 });
    await eventually('the first line', () => host.out().includes('"n":1'));
    for (let n = 2; n < 30; n++) (n % 2 === 0 ? b : a).emit({ n });
    await eventually('all lines', () => host.out().trimEnd().split('\n').length === 29);
    host.signal('SIGTERM');
    expect(await done).toBe(0);
    const lines = host
      .out()
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    const from = (url: string) => lines.filter((line) => line.instance_url === url).map((line) => line.n);
    expect(from(b.url)).toEqual([2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28]);
    expect(from(a.url)[0]).toBe(1);
    expect(host.listening()).toBe(0);
  });

  it('follows over a restart of the instance, which it notices', async () => {
    const first = await instance();
    const host = fakeHost();
    const done = events(host, '--follow', '--url', first.url);
    for (let n = 1; n <= 5; n++) first.emit({ n });
    await eventually('the last line before the restart', () => host.out().includes('n=5'));
    await first.stop();
    await eventually('a note of the outage', () => host.err().includes('trying again'));
    const second = await instance(first.url);
    second.emit({ n: 100 });
    await eventually('the first line after the restart', () => host.out().includes('n=100'));
    expect(host.err()).toContain('the instance was started again');
    host.signal('SIGINT');
    expect(await done).toBe(0);
  });

  it('says how many lines were overwritten before they could be read', async () => {
    const { url, emit } = await instance(undefined, 4);
    const host = fakeHost();
    const done = events(host, '--follow', '--url', url);
    emit({ n: 1 });
    await eventually('the line before the burst', () => host.out().includes('n=1\n'));
    for (let n = 2; n < 40; n++) emit({ n });
    await eventually('the line after the burst', () => host.out().includes('n=39'));
    expect(host.err()).toMatch(/\d+ lines were overwritten before they could be read/);
    host.signal('SIGINT');
    await done;
  });

  it('follows an instance that takes no subscriptions by looking', async () => {
    const { url, emit } = await instance(undefined, undefined, false);
    const host = fakeHost();
    const done = events(host, '--follow', '--url', url);
    emit({ n: 1 });
    await eventually('the first line without a subscription', () => host.out().includes('n=1'));
    emit({ n: 2 });
    await eventually('a later line without a subscription', () => host.out().includes('n=2'));
    expect(host.err()).toBe('');
    host.signal('SIGINT');
    await done;
  });

  it('presents the bearer token of a file, and ends with 6 when it is refused', async () => {
    const { url, emit } = await instance(undefined, undefined, true, 'letmein');
    emit({ n: 7 });
    const folder = mkdtempSync(join(tmpdir(), 'agentd-events-'));
    try {
      const [good, bad] = [join(folder, 'good'), join(folder, 'bad')];
      writeFileSync(good, 'letmein\n');
      writeFileSync(bad, 'wrong\n');
      const host = fakeHost();
      expect(await events(host, '--url', url, '--bearer-file', good)).toBe(0);
      expect(host.out()).toContain('n=7');
      for (const args of [['--bearer-file', bad], []]) {
        const refused = events(fakeHost(), '--url', url, ...args);
        await expect(refused).rejects.toMatchObject({ code: 'MCP_UNAVAILABLE', exitCode: 6 });
        await expect(refused).rejects.not.toThrow(/letmein|wrong/);
      }
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it('ends with 6 when an instance cannot be reached', async () => {
    const gone = await instance();
    await gone.stop();
    await expect(events(fakeHost(), '--url', gone.url)).rejects.toMatchObject({
      code: 'MCP_UNAVAILABLE',
      exitCode: 6,
    });
  });

  it('refuses URLs and flags that make no sense', async () => {
    for (const args of [
      ['--url', 'ftp://x'],
      ['--url', 'nonsense'],
      ['--url', 'http://127.0.0.1:1', '--level', 'loud'],
      ['--url', 'http://127.0.0.1:1', '--cert', 'x'],
    ]) {
      await expect(events(fakeHost(), ...args)).rejects.toMatchObject({ code: 'USAGE', exitCode: 2 });
    }
  });
});
