import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { operatorResult } from '../../../protocol/management.ts';
import { TERMINAL_STATUSES } from '../../../protocol/terminal-status.ts';
import { inShard } from '../../../supervisor/gates/shard-gate.ts';
import { readCgroupMemory } from '../../../supervisor/telemetry/cgroup-memory.ts';
import { FixtureServer } from '../../fixtures/mcp/fixture-server.ts';
import { eventually } from '../../helpers/eventually.ts';
import { connectSdkClient, type TestClient } from '../../helpers/sdk-client.ts';
import { Binary } from '../support/binary.ts';
import { type Family, figureOf } from '../support/exposition.ts';
import { expectContractLines } from '../support/lines.ts';
import { claims, ELSEWHERE, ODD_TOOL, PLAYBOOK, sourceTools, uriOf } from '../support/metrics-scenario.ts';
import { expectRegistered, SPECS } from '../support/registered.ts';
import { probe, scrape, seriesCount } from '../support/scrape.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/**
 * One supervisor is put through everything that has a figure, and scraped all along: the registry
 * and what is exposed are the same set.
 */
const folder = temporaryFolder();

let source: FixtureServer;
let coordinator: FixtureServer;
let supervisor: Binary;
let operator: TestClient;
let metricsUrl = '';

const figures = (): Promise<ReadonlyMap<string, Family>> => scrape(metricsUrl);
/** Waits for a figure to be more than 0. */
const counted = (name: string, labels: Record<string, string> = {}): Promise<unknown> =>
  eventually(`${name} ${JSON.stringify(labels)}`, async () => figureOf(await figures(), name, labels) > 0);
const put = (kind: string): Promise<void> => source.put(uriOf(kind), 'text');
const operate = (method: string, params: Record<string, unknown> = {}) =>
  operator.client.request({ method, params }, operatorResult);

beforeAll(async () => {
  source = await FixtureServer.start({ tools: sourceTools });
  coordinator = await FixtureServer.start({ tools: claims });
  const state = folder.folder('state');
  folder.file('state/probe.generation', '1\n');
  const config = folder.file(
    'agentd.yaml',
    `agent: { name: probe, instruction: work }
intelligence: { endpoints: [ "script:${folder.file('playbook.yaml', PLAYBOOK)}" ] }
shard: 0/2
claim: { ttl: 2s }
limits: { max_steps: 5, max_tokens: 1000, tree_tokens: 3000, deadline: 6s, no_progress: 3s, max_depth: 1, max_children: 20, budget_tokens: 1000000 }
mcp:
  servers:
    - { name: src, endpoint: "${source.url}", tags: [ untrusted_input ] }
    - { name: coord, endpoint: "${coordinator.url}", tags: [ sensitive, egress ] }
    - { name: gone, endpoint: "http://127.0.0.1:1/mcp", required: false }
routes:
${['claimed', 'lost', 'released', 'expiring'].map((kind) => `  - { name: ${kind}, server: src, match: "a:///${kind}*", debounce: 0, tools: [ "src__*" ], claim: { server: coord } }`).join('\n')}
  - { name: session, server: src, match: "a:///session*", debounce: 0, disposition: continue, tools: [ "src__*" ] }
  - { name: toxic, server: src, match: "a:///toxic*", debounce: 0, tools: [ "*" ] }
  - { name: slow, server: src, match: "a:///twice*", debounce: 2s, tools: [ "src__*" ] }
  - { name: all, server: src, match: "a:///**", debounce: 0, max_inflight: 24, tools: [ "src__*" ] }
`,
  );
  supervisor = new Binary(
    [
      'supervise',
      '--config',
      config,
      '--metrics-addr',
      '127.0.0.1:0',
      '--serve-mcp',
      'http://127.0.0.1:0',
      '--log-level',
      'debug',
    ],
    { STATE_DIRECTORY: state },
  );
  const ready = await supervisor.ready();
  metricsUrl = String(ready.metrics_url);
  operator = await connectSdkClient(String(ready.management_url));
});

afterAll(async () => {
  await operator?.close().catch(() => undefined);
  await supervisor?.stop();
  await source?.stop();
  await coordinator?.stop();
});

describe('the metrics of a supervisor', () => {
  it('are all there from the first scrape on', async () => {
    expectRegistered(await figures());
    const { type } = await probe(metricsUrl, '/metrics');
    expect(type).toBe('text/plain; version=0.0.4; charset=utf-8');
  });

  it('count runs of every kind', async () => {
    for (const kind of [
      'deadline',
      'stuck',
      'session',
      'tools',
      'refuse',
      'steps',
      'tokens',
      'loop',
      'crash',
    ])
      await put(kind);
    const statuses = TERMINAL_STATUSES.filter((status) => status !== 'cancelled');
    for (const status of statuses) await counted('agent_runs_total', { status });
    await counted('agent_tool_calls_total', { server: 'src', tool: 'echo', ok: 'true' });
    await counted('agent_tool_calls_total', { server: 'src', tool: 'fail', ok: 'false' });
    await counted('agent_tool_calls_total', { server: 'src', tool: ODD_TOOL });
    await counted('agent_subagent_stuck_kills_total', { signal: 'kill' });
  });

  it('count claims, shards and events without a route', async () => {
    for (const kind of ['claimed', 'lost', 'released', 'expiring', 'twice']) await put(kind);
    const twice = uriOf('twice');
    await supervisor.line(
      'the first update',
      ({ event, uri }) => event === 'resource.updated' && uri === twice,
    );
    await put('twice');
    await source.put(uriOf('tools', 1), 'another shard');
    await operator.client.callTool({ name: 'subscribe', arguments: { server: 'src', uri: 'stray:///x' } });
    await source.put('stray:///x', 'nobody wants it');
    for (const end of ['granted', 'lost', 'released', 'expired']) await counted(`agent_claims_${end}_total`);
    await counted('agent_runs_total', { status: 'cancelled' });
    await counted('agent_shard_skipped_total');
    await counted('agent_unrouted_events_total');
    await counted('agent_coalesced_events_total');
  });

  it('count failures of the model by their reason, and say when it is down', async () => {
    for (const kind of ['unreachable', 'auth', 'timeout', 'broken']) await put(kind);
    for (const reason of ['unreachable', 'auth', 'timeout', '5xx'])
      await counted('agent_intel_errors_total', { reason });
  });

  it('count what policy refuses, wherever in the tree', async () => {
    for (const kind of ['toxic', 'spawner', 'spent', 'scope']) await put(kind);
    for (const reason of ['trifecta', 'rate', 'budget', 'depth', 'mcp'])
      await counted('agent_refusals_total', { reason });
  });

  it('count restarts of a session until its breaker opens, and what is dropped then', async () => {
    await counted('agent_subagent_restarts_total', { reason: 'crashed' });
    await counted('agent_restarts_tripped_total');
    await counted('agent_dropped_events_total');
  });

  it('follow a server that goes and comes back', async () => {
    await source.stop();
    await eventually(
      'the loss',
      async () =>
        (await figures()).get('agent_mcp_up')?.samples.find(({ labels }) => labels.server === 'src')
          ?.value === 0,
    );
    await counted('agent_mcp_connect_failures_total', { server: 'src' });
    await source.listen();
    await counted('agent_mcp_up', { server: 'src' });
    expect(figureOf(await figures(), 'agent_mcp_up', { server: 'gone' })).toBe(0);
    await counted('agent_mcp_connect_failures_total', { server: 'gone' });
  });

  it('show what an operator switched on', async () => {
    await operate('a2a.Pause');
    expect(figureOf(await figures(), 'agent_paused')).toBe(1);
    await operate('a2a.Resume');
    await operate('a2a.LameDuck');
    const lame = await figures();
    expect([figureOf(lame, 'agent_lame_duck'), figureOf(lame, 'agent_ready')]).toEqual([1, 0]);
    await operate('a2a.LameDuck', { ready: true });
    const back = await figures();
    expect([figureOf(back, 'agent_paused'), figureOf(back, 'agent_lame_duck')]).toEqual([0, 0]);
  });

  it('are as many after many runs with ids of their own as after few (H27)', async () => {
    const runs = async (): Promise<number> => figureOf(await figures(), 'agent_runs_total');
    const batch = async (name: string, count: number): Promise<void> => {
      const before = await runs();
      const uris = Array.from({ length: count * 3 }, (_, at) => `a:///plain-${name}-${at}`)
        .filter((uri) => inShard(uri, 0, 2))
        .slice(0, count);
      for (const uri of uris) await source.put(uri, 'x');
      await eventually(`${count} runs`, async () => (await runs()) >= before + count, 120_000);
    };
    await batch('few', 10);
    const few = await figures();
    await batch('many', 80);
    const many = await figures();
    expect(seriesCount(many)).toBe(seriesCount(few));
    expectRegistered(many);
  }, 180_000);

  it('are whole in two scrapes at once', async () => {
    const both = await Promise.all([figures(), figures(), probe(metricsUrl, '/metrics')]);
    expect(seriesCount(both[0])).toBe(seriesCount(both[1]));
    expect(both[2].body.endsWith('\n')).toBe(true);
  });

  it('are still served while it drains', async () => {
    await put('drained');
    await eventually(
      'the run that will be drained',
      async () => figureOf(await figures(), 'agent_inflight_reactions') > 0,
    );
    await put('lifetime');
    await counted('agent_limit_exceeded_total', { limit: 'tokens_lifetime' });
    const before = await figures();
    expect(figureOf(before, 'agent_budget_tokens_remaining')).toBe(0);
    supervisor.kill('SIGTERM');
    await supervisor.line('the drain', ({ event }) => event === 'drain.start');
    const draining = await figures();
    expect(figureOf(draining, 'agent_draining')).toBe(1);
    expect(figureOf(draining, 'agent_ready')).toBe(0);
    expect(figureOf(draining, 'agent_drains_total', { phase: 'started' })).toBe(1);
    expectRegistered(draining);
    expectAllExercised(draining);
    expectNothingUnbounded(draining);
    expect(await supervisor.ended).toEqual({ code: 0, signal: null });
    expectContractLines(supervisor);
  });

  it('count the restarts of an instance by what the service manager keeps for it', async () => {
    const again = new Binary(
      [
        'supervise',
        '--interval',
        '1h',
        '--instruction',
        'x',
        '--intelligence',
        'script:final',
        '--metrics-addr',
        '127.0.0.1:0',
      ],
      { STATE_DIRECTORY: folder.path('state'), AGENT_POD_NAME: 'probe' },
    );
    const { metrics_url } = await again.ready();
    expect(figureOf(await scrape(String(metrics_url)), 'agent_restarts_total')).toBe(2);
    expect(await again.stop()).toEqual({ code: 0, signal: null });
  });
});

/** Every name, every label and every value of a closed label has been seen, counters above 0. */
function expectAllExercised(families: ReadonlyMap<string, Family>): void {
  const memory = readCgroupMemory();
  const absent = [
    ...(memory.maxBytes === null ? ['agent_memory_max_bytes'] : []),
    ...(memory.currentBytes === null ? ['agent_memory_current_bytes'] : []),
  ];
  const missing: string[] = [];
  for (const { name, type, labels } of SPECS) {
    const samples = families.get(name)?.samples ?? [];
    if (samples.length === 0 && !absent.includes(name)) missing.push(name);
    if (type !== 'counter') continue;
    if (figureOf(families, name) === 0) missing.push(name);
    for (const label of labels) {
      for (const value of label.values ?? []) {
        if (figureOf(families, name, { [label.name]: value }) === 0)
          missing.push(`${name} ${label.name}=${value}`);
      }
    }
  }
  const unexplained = missing.filter(
    (one) => ELSEWHERE[one] === undefined && ELSEWHERE[one.split(' ')[0] ?? ''] === undefined,
  );
  expect(unexplained).toEqual([]);
}

/** No label holds what there can be any number of. */
function expectNothingUnbounded(families: ReadonlyMap<string, Family>): void {
  const values = [...families.values()].flatMap(({ samples }) =>
    samples.flatMap(({ labels }) => Object.values(labels)),
  );
  const ids = supervisor.lines.flatMap(({ run_id, agent_id, agent_path, lease_id, claim_key, item }) => [
    run_id,
    agent_id,
    agent_path,
    lease_id,
    claim_key,
    item,
  ]);
  const unbounded = new Set(ids.filter((id) => typeof id === 'string' && id !== 'sup'));
  expect(unbounded.size).toBeGreaterThan(100);
  expect(values.filter((value) => unbounded.has(value))).toEqual([]);
  expect(
    values.filter((value) => value.includes('://') || value.includes('0/2') || value === 'probe'),
  ).toEqual([]);
}
