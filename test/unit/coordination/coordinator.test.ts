import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { META } from '../../../protocol/work-tools.ts';
import { type Coordinator, startCoordinator } from '../../../supervisor/coordination/coordinator.ts';
import { COORDINATOR_METRICS } from '../../../supervisor/coordination/coordinator-metrics.ts';
import { fileToken } from '../../../supervisor/coordination/file-token.ts';
import { DEFAULT_POLICY, type Ledger } from '../../../supervisor/coordination/ledger.ts';
import { SqliteLedger } from '../../../supervisor/coordination/sqlite/sqlite-ledger.ts';
import { WORK_TOOLS } from '../../../supervisor/coordination/work-tools.ts';
import { eventually } from '../../helpers/eventually.ts';
import { nullLog } from '../../helpers/null-log.ts';
import { runVerb } from '../../helpers/run-verb.ts';
import { connectSdkClient, type TestClient } from '../../helpers/sdk-client.ts';

const pem = (name: string): string => join(import.meta.dirname, '../../fixtures/surface', `${name}.pem`);

describe('the coordination server', () => {
  let folder: string;
  const coordinators: Coordinator[] = [];
  const clients: TestClient[] = [];
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'agentd-coordinator-'));
  });
  afterEach(async () => {
    for (const client of clients.splice(0)) await client.close();
    for (const coordinator of coordinators.splice(0)) await coordinator.close(0);
    rmSync(folder, { recursive: true, force: true });
  });

  async function start(more: Partial<Parameters<typeof startCoordinator>[0]> = {}): Promise<Coordinator> {
    const ledger =
      more.ledger ?? (await SqliteLedger.open({ path: join(folder, 'ledger.db'), policy: DEFAULT_POLICY }));
    const coordinator = await startCoordinator({
      listen: 'http://127.0.0.1:0',
      log: nullLog,
      ...more,
      ledger,
    });
    coordinators.push(coordinator);
    return coordinator;
  }
  async function client(url: string, headers = {}): Promise<TestClient> {
    const connected = await connectSdkClient(url, headers);
    clients.push(connected);
    return connected;
  }
  const claim = (item: string, instance: string) => ({
    name: 'work.claim',
    arguments: { item, ttl_ms: 60_000 },
    _meta: { [META.INSTANCE]: instance },
  });

  it('exposes metrics whose series do not grow with what is claimed or who claims', async () => {
    const coordinator = await start({ metricsAddr: '127.0.0.1:0' });
    const { client: sdk } = await client(coordinator.url);
    const scrape = async (): Promise<string[]> => {
      const response = await fetch(`${coordinator.metricsUrl}/metrics`);
      expect(response.headers.get('content-type')).toContain('text/plain');
      return (await response.text()).split('\n');
    };
    const names = (lines: string[]): string[] =>
      lines
        .flatMap((line) => (line === '' || line.startsWith('#') ? [] : [line.replace(/ \S+$/, '')]))
        .sort();
    await sdk.callTool(claim('first', 'a'));
    const before = names(await scrape());
    for (let index = 0; index < 50; index++) await sdk.callTool(claim(`item-${index}`, `i${index}`));
    await sdk.callTool(claim('first', 'b'));
    await expect(sdk.callTool({ name: 'work.\n"evil\\' })).rejects.toThrow();
    const after = await scrape();
    expect(names(after)).toEqual(before);
    const value = (series: string): string | undefined =>
      after
        .find((line) => line.startsWith(`${series} `))
        ?.split(' ')
        .at(-1);
    expect(value('agentd_coordinate_up')).toBe('1');
    expect(value('agentd_coordinate_ledger_up')).toBe('1');
    expect(value('agentd_coordinate_sessions')).toBe('1');
    expect(value('agentd_coordinate_items{state="claimed"}')).toBe('51');
    expect(value('agentd_coordinate_calls_total{tool="work.claim",outcome="ok"}')).toBe('51');
    expect(value('agentd_coordinate_calls_total{tool="work.claim",outcome="lost"}')).toBe('1');
    expect(value('agentd_coordinate_call_duration_ms_count{tool="work.claim"}')).toBe('52');
    for (const { name, help } of Object.values(COORDINATOR_METRICS)) {
      expect(after).toContain(`# HELP ${name} ${help}`);
    }
  });

  it('is described in its guide, tool by tool and series by series', () => {
    const guide = readFileSync(join(import.meta.dirname, '../../../docs/coordination.md'), 'utf8');
    for (const { name } of WORK_TOOLS) expect(guide).toContain(`| \`${name}\` |`);
    for (const { name } of Object.values(COORDINATOR_METRICS)) {
      expect(guide).toMatch(new RegExp(`${name}|${name.replace('agentd_coordinate', '')}[,| ]`));
    }
  });

  it('is ready while its database answers and alive all the time', async () => {
    const ledger = await SqliteLedger.open({ path: join(folder, 'ledger.db'), policy: DEFAULT_POLICY });
    let broken = false;
    const breakable: Ledger = new Proxy<Ledger>(ledger, {
      get: (target, name: keyof Ledger) => {
        if (broken && (name === 'ping' || name === 'stats')) return () => Promise.reject(new Error('away'));
        const member: unknown = Reflect.get(target, name);
        return typeof member === 'function' ? member.bind(target) : member;
      },
    });
    const coordinator = await start({ ledger: breakable });
    const { origin } = new URL(coordinator.url);
    const probe = async (path: string) => {
      const response = await fetch(origin + path);
      return { status: response.status, body: await response.text() };
    };
    expect(await probe('/readyz')).toEqual({ status: 200, body: '{"ready":true}\n' });
    expect((await probe('/healthz')).status).toBe(200);
    broken = true;
    expect(await probe('/readyz')).toEqual({
      status: 503,
      body: '{"ready":false,"reason":"ledger_unavailable"}\n',
    });
    expect((await probe('/healthz')).status).toBe(200);
    expect((await probe('/metrics')).body).toContain('agentd_coordinate_ledger_up 0\n');
  });

  it('goes on with a session that another server began', async () => {
    const [one, two] = [await start(), await start()];
    const { client: sdk, transport, updated } = await client(one.url);
    await sdk.subscribeResource({ uri: 'work://pending' });
    expect((await sdk.callTool(claim('x', 'a'))).structuredContent).toMatchObject({ granted: true });
    const session = transport.sessionId ?? '';
    const post = (message: object) =>
      fetch(two.url, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          'mcp-session-id': session,
          'mcp-protocol-version': transport.protocolVersion ?? '',
        },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, ...message }),
      });
    const answers = await Promise.all(
      ['a', 'b'].map(async (instance) => {
        const response = await post({ method: 'tools/call', params: claim('x', instance) });
        return (await response.json()) as { result: { structuredContent: object } };
      }),
    );
    expect(answers[0]?.result.structuredContent).toMatchObject({ granted: true, attempt: 1 });
    expect(answers[1]?.result.structuredContent).toMatchObject({ granted: false, held_by: 'a' });

    const stream = await fetch(two.url, {
      headers: { accept: 'text/event-stream', 'mcp-session-id': session },
    });
    expect(stream.status).toBe(200);
    const reader = stream.body?.getReader();
    await post({ method: 'tools/call', params: { name: 'work.submit', arguments: { item: 'new' } } });
    let heard = '';
    while (!heard.includes('work://pending')) {
      const chunk = await reader?.read();
      if (chunk === undefined || chunk.done) break;
      heard += Buffer.from(chunk.value).toString('utf8');
    }
    await reader?.cancel();
    expect(heard).toContain('notifications/resources/updated');
    expect(updated.length).toBeGreaterThanOrEqual(0);
    const forged = await fetch(two.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json', 'mcp-session-id': 'forged' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
    });
    expect(forged.status).toBe(404);
  });

  it('serves only who presents the token, which may rotate, and lets probes through without', async () => {
    const tokenFile = join(folder, 'token');
    writeFileSync(tokenFile, 'first-token\n');
    const tls = { certFile: pem('server.cert'), keyFile: pem('server.key') };
    const coordinator = await start({ listen: 'https://127.0.0.1:0', tls, bearer: fileToken(tokenFile) });
    const work = (...more: string[]) =>
      runVerb([
        'work',
        'stats',
        '--json',
        '--url',
        coordinator.url,
        '--tls-ca',
        pem('authority.cert'),
        ...more,
      ]);
    expect(await work('--bearer-file', tokenFile)).toMatchObject({ code: 0 });
    const refused = await work();
    expect(refused).toMatchObject({ code: 6 });
    expect(refused.stderr).toMatch(/client certificate or bearer token is required/);
    const wrong = join(folder, 'wrong');
    writeFileSync(wrong, 'second-token');
    expect(await work('--bearer-file', wrong)).toMatchObject({ code: 6 });
    writeFileSync(tokenFile, 'second-token');
    expect(await work('--bearer-file', wrong)).toMatchObject({ code: 0 });
    expect(refused.stderr).not.toContain('first-token');
  });

  it('serves only who shows a certificate of the client authority', async () => {
    const tls = {
      certFile: pem('server.cert'),
      keyFile: pem('server.key'),
      clientCaFile: pem('authority.cert'),
    };
    const coordinator = await start({ listen: 'https://127.0.0.1:0', tls });
    const work = (name: string | null) => {
      const identity =
        name === null ? [] : ['--tls-cert', pem(`${name}.cert`), '--tls-key', pem(`${name}.key`)];
      return runVerb([
        'work',
        'stats',
        '--url',
        coordinator.url,
        '--tls-ca',
        pem('authority.cert'),
        ...identity,
      ]);
    };
    expect(await work('client')).toMatchObject({ code: 0 });
    expect(await work('impostor')).toMatchObject({ code: 6 });
    expect(await work(null)).toMatchObject({ code: 6 });
  });

  it('expires leases in its own time and tells subscribers', async () => {
    const coordinator = await start();
    const { client: sdk, updated } = await client(coordinator.url);
    await sdk.callTool({ name: 'work.claim', arguments: { item: 'x', ttl_ms: 50 } });
    await sdk.subscribeResource({ uri: 'work://pending' });
    await eventually('word of the expired lease', () => updated.includes('work://pending'));
  });

  it('leaves nothing open when it cannot listen', async () => {
    const first = await start();
    const ledger = await SqliteLedger.open({ path: join(folder, 'other.db'), policy: DEFAULT_POLICY });
    const { origin } = new URL(first.url);
    await expect(
      startCoordinator({ ledger, listen: origin, metricsAddr: '127.0.0.1:0', log: nullLog }),
    ).rejects.toMatchObject({ code: 'ADDRESS_IN_USE' });
    await expect(ledger.ping()).rejects.toMatchObject({ code: 'LEDGER_UNAVAILABLE' });
  });
});
