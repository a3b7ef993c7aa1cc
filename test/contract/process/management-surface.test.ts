import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { managementArguments, OPERATOR_METHODS, operatorResult } from '../../../protocol/management.ts';
import type { DocumentName } from '../../../scripts/print-schemas.ts';
import { FixtureServer } from '../../fixtures/mcp/fixture-server.ts';
import { eventually } from '../../helpers/eventually.ts';
import { connectSdkClient, type TestClient } from '../../helpers/sdk-client.ts';
import { Binary } from '../support/binary.ts';
import { parseExposition } from '../support/exposition.ts';
import { expectContractLines, lineProblems } from '../support/lines.ts';
import { schemaProblems } from '../support/schemas.ts';
import { probe } from '../support/scrape.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** An official client drives every tool, resource and method of section 10 against a real supervisor. */
const folder = temporaryFolder();
const RESOURCES = [
  'capabilities',
  'status',
  'inventory',
  'capacity',
  'intelligence',
  'metrics',
  'events',
  'config/effective',
];
const TEMPLATES = ['run/{run_id}', 'session/{id}', 'subagent/{handle}', 'subagent/{handle}/result'];
const driven = new Set<string>();
let source: FixtureServer;
let supervisor: Binary;
let operator: TestClient;
let metricsUrl = '';

beforeAll(async () => {
  source = await FixtureServer.start({ resources: { 'note:///1': 'the text of a note' } });
  const playbook = folder.file(
    'playbook.yaml',
    `cases:
  - { when: { uri: "hold:///**" }, turns: [ { hang: true } ] }
  - { when: { uri: "chat:///**" }, turns: [ { final: "a turn" } ] }
  - turns: [ { final: "{{instruction}}, done" } ]
`,
  );
  const config = folder.file(
    'agentd.yaml',
    `agent: { name: probe, instruction: work }
intelligence: { endpoints: [ "script:${playbook}" ] }
mcp: { servers: [ { name: src, endpoint: "${source.url}" } ] }
lifecycle: { drain_timeout: 4s }
routes:
  - { name: hold, server: src, match: "hold:///**", debounce: 0 }
  - { name: chat, server: src, match: "chat:///**", debounce: 0, disposition: continue, session: talk }
`,
  );
  supervisor = new Binary([
    'supervise',
    '--config',
    config,
    '--serve-mcp',
    'http://127.0.0.1:0',
    '--metrics-addr',
    '127.0.0.1:0',
  ]);
  const ready = await supervisor.ready();
  metricsUrl = String(ready.metrics_url);
  operator = await connectSdkClient(String(ready.management_url));
});
afterAll(async () => {
  await operator?.close().catch(() => undefined);
  await supervisor?.stop();
  await source?.stop();
});

async function text(uri: string): Promise<string> {
  const { contents } = await operator.client.readResource({ uri });
  const [first] = contents;
  if (first === undefined || !('text' in first)) throw new Error(`${uri} has no text`);
  return String(first.text);
}
async function document(uri: string, schema?: DocumentName): Promise<Record<string, unknown>> {
  const read = z.record(z.string(), z.unknown()).parse(JSON.parse(await text(uri)));
  if (schema !== undefined) expect(schemaProblems(schema, read), uri).toEqual([]);
  return read;
}
async function call(name: string, args: Record<string, unknown> = {}): Promise<Record<string, unknown>> {
  driven.add(name);
  const answer = await operator.client.callTool({ name, arguments: args });
  expect(answer.isError, JSON.stringify(answer.content)).not.toBe(true);
  return z.record(z.string(), z.unknown()).parse(answer.structuredContent);
}
async function operate(method: string, params: Record<string, unknown> = {}): Promise<unknown> {
  driven.add(method);
  const answer = await operator.client.request({ method, params }, z.looseObject({}));
  if (method !== 'a2a.Cancel') {
    expect(schemaProblems('operator_result', answer)).toEqual([]);
    expect(operatorResult.parse(answer)).toEqual(answer);
  }
  return answer;
}
const runningOn = (route: string): Promise<string> =>
  eventually(`a run on ${route}`, async () => {
    const { subagents } = z
      .looseObject({
        subagents: z.array(z.looseObject({ handle: z.string(), route: z.string().nullable() })),
      })
      .parse(await document('agent://inventory', 'inventory'));
    return subagents.find((one) => one.route === route)?.handle ?? false;
  });

describe('the management surface of the built binary', () => {
  it('lists exactly the tools and resources of the contract', async () => {
    const { tools } = await operator.client.listTools();
    expect(tools.map(({ name }) => name).sort()).toEqual(Object.keys(managementArguments).sort());
    const { resources } = await operator.client.listResources();
    expect(resources.map(({ uri }) => uri).sort()).toEqual(RESOURCES.map((name) => `agent://${name}`).sort());
    const { resourceTemplates } = await operator.client.listResourceTemplates();
    expect(resourceTemplates.map(({ uriTemplate }) => uriTemplate).sort()).toEqual(
      TEMPLATES.map((name) => `agent://${name}`).sort(),
    );
  });

  it('serves every static resource by its schema', async () => {
    await document('agent://capabilities', 'manifest');
    expect(await document('agent://status', 'status')).toMatchObject({
      instance: 'probe',
      phase: 'running',
      ready: true,
    });
    await document('agent://inventory', 'inventory');
    expect(await document('agent://capacity', 'capacity')).toMatchObject({
      instance: 'probe',
      standby: false,
    });
    expect(await document('agent://intelligence')).toMatchObject({ all_down: false });
    expect(await document('agent://config/effective')).toMatchObject({ mode: 'reactive' });
    const page = z
      .object({ events: z.array(z.looseObject({ seq: z.number() })), newest_seq: z.number() })
      .loose()
      .parse(await document('agent://events', 'events_page'));
    expect(page.events.map(({ event }) => event)).toContain('proc.start');
    expect(lineProblems(page.events.map(({ seq: _seq, ...line }) => line))).toEqual([]);
    const later = await document(`agent://events?after=${page.newest_seq}&level=error`, 'events_page');
    expect(later.events).toEqual([]);
    const scraped = parseExposition((await probe(metricsUrl, '/metrics')).body);
    expect([...parseExposition(await text('agent://metrics')).keys()]).toEqual([...scraped.keys()]);
  });

  it('starts a subagent, and tells how it stands and what it came to', async () => {
    const { handle, run_id } = await call('subagent.spawn', { instruction: 'sum it up' });
    const ended = await eventually('its end', async () => {
      const status = await call('subagent.status', { handle });
      expect(schemaProblems('subagent', status)).toEqual([]);
      return status.status !== 'running' && status;
    });
    expect(ended).toMatchObject({ handle, run_id, status: 'completed' });
    expect(await document(`agent://subagent/${String(handle)}`, 'subagent')).toMatchObject({
      status: 'completed',
    });
    expect(await document(`agent://subagent/${String(handle)}/result`, 'subagent_result')).toMatchObject({
      result: 'sum it up, done',
    });
    const report = await document(`agent://run/${String(run_id)}`, 'run_report');
    expect(report).toMatchObject({ run_id, instance: 'probe', status: 'completed', exit_code: 0 });
    const line = await supervisor.line(
      'its exit',
      (one) => one.event === 'subagent.exit' && one.run_id === run_id,
    );
    expect(report.trace_id).toBe(line.trace_id);
    expect(report.trace_id).toMatch(/^[0-9a-f]{32}$/);
  });

  it('reads, watches and forgets resources of its servers', async () => {
    expect(await call('resource.read', { server: 'src', uri: 'note:///1' })).toMatchObject({
      text: 'the text of a note',
    });
    await call('subscribe', { server: 'src', uri: 'note:///1' });
    await eventually('the subscription', () => source.count('subscribe note:///1') > 0);
    await call('unsubscribe', { server: 'src', uri: 'note:///1' });
    await eventually('its end', () => source.count('unsubscribe note:///1') > 0);
  });

  it('talks to a warm session', async () => {
    await source.put('chat:///1', 'hello');
    const handle = await runningOn('chat');
    const turns = async (): Promise<number> =>
      Number((await document('agent://session/talk', 'session')).turns);
    await eventually('a turn', async () => (await turns()) >= 1);
    await call('subagent.send', { handle, message: 'and you?' });
    expect(await document('agent://session/talk', 'session')).toMatchObject({ id: 'talk' });
  });

  it('takes an assigned item, and stops it by tool and by method', async () => {
    await call('assign', { server: 'src', uri: 'hold:///1' });
    await call('subagent.cancel', { handle: await runningOn('hold'), reason: 'enough' });
    await eventually(
      'it to be gone',
      async () => Number((await document('agent://status', 'status')).inflight_reactions) === 0,
    );
    await call('assign', { server: 'src', uri: 'hold:///2' });
    expect(await operate('a2a.Cancel', { handle: await runningOn('hold') })).toMatchObject({
      cancelled: true,
    });
  });

  it('tells subscribers of a state that changed', async () => {
    await operator.client.subscribeResource({ uri: 'agent://status' });
    expect(await operate('a2a.Pause')).toMatchObject({ paused: true });
    await eventually('a notification', () => operator.updated.includes('agent://status'));
    expect(await document('agent://status', 'status')).toMatchObject({ paused: true });
    expect(await operate('a2a.Resume')).toMatchObject({ paused: false });
    await operator.client.unsubscribeResource({ uri: 'agent://status' });
  });

  it('does not know what does not exist (-32002), takes no wrong arguments (-32602) and no other method (-32601)', async () => {
    for (const uri of [
      'agent://nothing',
      'agent://run/none',
      'agent://session/none',
      'agent://subagent/9',
      'agent://subagent/9/result',
      'note:///1',
    ]) {
      await expect(operator.client.readResource({ uri }), uri).rejects.toMatchObject({ code: -32002 });
    }
    const ask = (method: string, params: Record<string, unknown>) =>
      operator.client.request({ method, params }, z.looseObject({}));
    await expect(ask('a2a.Drain', { deadline_ms: -1 })).rejects.toMatchObject({ code: -32602 });
    await expect(ask('a2a.Cancel', { handle: '9.9' })).rejects.toMatchObject({ code: -32602 });
    await expect(ask('a2a.Explode', {})).rejects.toMatchObject({ code: -32601 });
  });

  it('goes lame and back, drains when told, and every tool and method has been driven', async () => {
    await call('status');
    expect(await operate('a2a.LameDuck')).toMatchObject({ lame_duck: true });
    const lame = await probe(metricsUrl, '/readyz');
    expect([lame.status, JSON.parse(lame.body).reasons]).toEqual([503, ['lame_duck']]);
    expect((await probe(metricsUrl, '/healthz')).status).toBe(200);
    expect(await operate('a2a.LameDuck', { ready: true })).toMatchObject({ lame_duck: false });
    await eventually('readiness', async () => (await probe(metricsUrl, '/readyz')).status === 200);
    expect(await operate('a2a.Drain', { deadline_ms: 3_000 })).toMatchObject({ draining: true });
    expect(await supervisor.ended).toEqual({ code: 0, signal: null });
    expect([...driven].sort()).toEqual([...Object.keys(managementArguments), ...OPERATOR_METHODS].sort());
    expectContractLines(supervisor);
    expect(supervisor.stdout).toBe('');
  });
});

describe('a child that asks for an operator method', () => {
  it('is told of no such thing, and nothing happens', async () => {
    const frame = JSON.stringify({ jsonrpc: '2.0', id: 7_000_003, method: 'a2a.Drain', params: {} });
    const playbook = folder.file(
      'drain.yaml',
      `turns: [ { garbage: '${frame}' }, { sleep: 300 }, { final: done } ]\n`,
    );
    const run = new Binary(['run', 'x', '--intelligence', `script:${playbook}`]);
    expect(await run.ended).toEqual({ code: 0, signal: null });
    expect(run.stdout).toBe('done\n');
    expect(run.named('drain.start')).toMatchObject([{ cause: 'finished' }]);
    expectContractLines(run);
  });
});
