import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { EVENT_NAMES } from '../../../protocol/event-line.ts';
import { OPERATOR_METHODS } from '../../../protocol/management.ts';
import { type CapabilitiesManifest, capabilitiesManifest } from '../../../protocol/manifest.ts';
import { METRICS } from '../../../protocol/metrics-registry.ts';
import { VERSIONS } from '../../../protocol/versions.ts';
import { IMPLEMENTED } from '../../../supervisor/config/implemented.ts';
import { FixtureServer } from '../../fixtures/mcp/fixture-server.ts';
import { connectSdkClient, type TestClient } from '../../helpers/sdk-client.ts';
import { Binary, runBinary } from '../support/binary.ts';
import { expectContractLines } from '../support/lines.ts';
import { schemaProblems } from '../support/schemas.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** The manifest, printed and served, by one builder; and the configuration it is made from. */
const folder = temporaryFolder();

function valid(document: unknown): CapabilitiesManifest {
  expect(schemaProblems('manifest', document)).toEqual([]);
  expect(capabilitiesManifest.parse(document)).toEqual(document);
  return capabilitiesManifest.parse(document);
}

describe('the printed manifest', () => {
  it('needs no instruction, no peer and no socket, and leaves no trace', async () => {
    const health = folder.path('health.json');
    // Nothing listens there, and the secret does not exist: neither is looked at.
    const printed = await runBinary([
      ...['supervise', '--capabilities', '--mcp', 'gone=http://127.0.0.1:1/mcp', '--health-file', health],
      ...['--intelligence', 'https://models.example', '--intelligence-token', '{{secret:NOT_THERE}}'],
      ...['--metrics-addr', '127.0.0.1:1', '--serve-mcp', 'http://127.0.0.1:1'],
    ]);
    expect(printed.exit).toEqual({ code: 0, signal: null });
    expect(printed.stderr).toBe('');
    const manifest = valid(JSON.parse(printed.stdout));
    expect(manifest.intelligence).toEqual({ transport: 'https', endpoints: 1, healthy: 'unknown' });
    expect(printed.stdout).not.toContain('models.example');
    expect(printed.stdout).not.toContain('NOT_THERE');
    expect(() => readFileSync(health)).toThrow('ENOENT');
  });

  it('says off the way the contract says off', async () => {
    const { surfaces, ...manifest } = valid(JSON.parse((await runBinary(['--capabilities'])).stdout));
    expect(manifest).toMatchObject({
      mode: 'once',
      model: null,
      contract_version: VERSIONS.contract_version,
      intelligence: { transport: null, endpoints: 0, healthy: 'unknown' },
      identity: { uid: null, node: null, namespace: null },
      mcp_servers: [],
      a2a_peers: [],
      exec_enabled: false,
      allow_trifecta: false,
    });
    expect(surfaces).toMatchObject({
      management: false,
      metrics: false,
      a2a: false,
      shard: null,
      operator_tools: [],
    });
    expect(surfaces).toMatchObject({ events: false, intelligence: false, cluster: false, standby: false });
    expect(surfaces).not.toHaveProperty('claim');
    const { metrics_schema, report_schema, events_schema, exit_codes } = surfaces;
    expect({ metrics_schema, report_schema, events_schema, exit_codes }).toEqual({
      metrics_schema: VERSIONS.metrics_schema,
      report_schema: VERSIONS.report_schema,
      events_schema: VERSIONS.events_schema,
      exit_codes: VERSIONS.exit_codes,
    });
  });

  it('claims what this build serves and nothing it refuses', async () => {
    const manifest = valid(JSON.parse((await runBinary(['--capabilities'])).stdout));
    for (const [feature, served] of Object.entries(IMPLEMENTED)) {
      expect(manifest.build_features.includes(feature.replaceAll('_', '-')), feature).toBe(served);
    }
    expect(manifest.surfaces.hot_reload).toBe(IMPLEMENTED.watch_config);
    const uses: Readonly<Partial<Record<keyof typeof IMPLEMENTED, readonly string[]>>> = {
      watch_config: ['--watch-config'],
      standby: [
        '--standby',
        '--assign-from',
        's:a:///x',
        '--mcp',
        's=http://127.0.0.1:1/mcp',
        '--mode',
        'reactive',
      ],
      cgroup: ['--cgroup', 'auto'],
      aggregate_logs: ['--aggregate-logs'],
    };
    for (const [feature, flags] of Object.entries(uses)) {
      const { exit, lines } = await runBinary([
        'run',
        'x',
        '--intelligence',
        'script:final',
        '--validate-config',
        ...flags,
      ]);
      const served = Object.entries(IMPLEMENTED).some(([name, on]) => name === feature && on);
      expect(exit.code, `${feature}: ${JSON.stringify(lines)}`).toBe(served ? 0 : 2);
    }
  });
});

describe('the served manifest', () => {
  let source: FixtureServer;
  let supervisor: Binary;
  let operator: TestClient;
  let flags: string[] = [];
  const env = {
    AGENT_POD_NAME: 'pod-1',
    AGENT_POD_UID: 'uid-1',
    AGENT_POD_NAMESPACE: 'agents',
    AGENT_NODE_NAME: 'node-1',
  };

  beforeAll(async () => {
    source = await FixtureServer.start({
      tools: { 'work.claim': () => ({ content: [] }), 'work.ack': () => ({ content: [] }) },
    });
    flags = [
      ...['--instruction', 'x', '--intelligence', 'script:final', '--model', 'some-model', '--run-id', 'R7'],
      ...[
        '--mcp',
        `src=${source.url}`,
        '--mcp-tags',
        'src=untrusted_input',
        '--route',
        'a:///**=>claim:src',
        '--shard',
        '1/4',
      ],
      ...[
        '--serve-mcp',
        'http://127.0.0.1:0',
        '--metrics-addr',
        '127.0.0.1:0',
        '--max-depth',
        '2',
        '--deadline',
        '90s',
      ],
    ];
    supervisor = new Binary(['supervise', ...flags], env);
    operator = await connectSdkClient(String((await supervisor.ready()).management_url));
  });
  afterAll(async () => {
    await operator?.close().catch(() => undefined);
    await supervisor?.stop();
    await source?.stop();
  });

  it('is the printed one but for what only a running process knows', async () => {
    const printed = valid(
      JSON.parse((await runBinary(['supervise', '--capabilities', ...flags], env)).stdout),
    );
    const { contents } = await operator.client.readResource({ uri: 'agent://capabilities' });
    const [first] = contents;
    const served = valid(JSON.parse(first !== undefined && 'text' in first ? first.text : ''));
    const ready = await supervisor.ready();
    // The live facts (docs/contract.md): two addresses with their real ports, and the model's health.
    expect(served.surfaces.management).toBe(ready.management_url);
    expect(served.surfaces.metrics).toBe(new URL(String(ready.metrics_url)).host);
    // No model has been called yet.
    expect(served.intelligence.healthy).toBe('unknown');
    const capacity = await operator.client.readResource({ uri: 'agent://capacity' });
    expect(JSON.stringify(capacity.contents)).toContain('\\"healthy\\":\\"unknown\\"');
    const facts = { intelligence: { ...served.intelligence, healthy: 'unknown' as const } };
    const surfaces = { ...served.surfaces, management: 'http://127.0.0.1:0', metrics: '127.0.0.1:0' };
    expect({ ...served, ...facts, surfaces }).toEqual(printed);
    expect(served).toMatchObject({
      identity: { run_id: 'R7', instance: 'pod-1', uid: 'uid-1', node: 'node-1', namespace: 'agents' },
      mcp_servers: [{ name: 'src', tags: ['untrusted_input'] }],
      limits: { max_depth: 2, deadline_ms: 90_000 },
      surfaces: { shard: '1/4', cluster: true, events: true, claim: { styles: ['tool', 'resource'] } },
    });
    expect([...served.surfaces.operator_tools].sort()).toEqual([...OPERATOR_METHODS].sort());
    expectContractLines(supervisor);
  });
});

describe('npm run schemas', () => {
  it('prints the whole contract as one JSON document', async () => {
    const { execa } = await import('execa');
    const root = new URL('../../../', import.meta.url);
    const { stdout } = await execa('npm', ['run', '--silent', 'schemas'], { cwd: root });
    const contract = JSON.parse(stdout);
    expect(contract).toMatchObject({ ...VERSIONS, event_names: [...EVENT_NAMES] });
    expect(contract.metrics.map(({ name }: { name: string }) => name)).toEqual(
      METRICS.map(({ name }) => name),
    );
    expect(Object.keys(contract.schemas)).toEqual(
      expect.arrayContaining(['manifest', 'run_report', 'event_line', 'config']),
    );
  });

  it.each(['examples/inbox/agentd.yaml', 'test/fixtures/fleet/agentd.yaml'])(
    'takes the configuration %s',
    (path) => {
      const text = readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8');
      expect(schemaProblems('config', parse(text))).toEqual([]);
      expect(schemaProblems('config', { ...parse(text), unheard_of: 1 })).not.toEqual([]);
    },
  );
});
