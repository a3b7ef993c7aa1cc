import { execFileSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { AGENTD, AgentdProcess, type Line } from '../../../scripts/fleet/agentd-process.ts';
import { FixtureServer, type ToolCall } from '../../fixtures/mcp/fixture-server.ts';
import { startModelServer } from '../../fixtures/model-server.ts';
import { OtlpReceiver, type ReceivedSpan } from '../../fixtures/telemetry/otlp-receiver.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const CALLER = 'b7ad6b7169203331';

let folder = '';
const closing: (() => Promise<unknown>)[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'agentd-traces-'));
});

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
  await rm(folder, { recursive: true, force: true });
});

async function receiver(...args: Parameters<typeof OtlpReceiver.start>): Promise<OtlpReceiver> {
  const started = await OtlpReceiver.start(...args);
  closing.push(() => started.close());
  return started;
}

interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly lines: readonly Line[];
}

async function run(args: readonly string[], env: Readonly<Record<string, string>>): Promise<Ran> {
  const child = new AgentdProcess('one-shot', [...args, '--log-format', 'json', '--log-level', 'debug'], env);
  const lines: Line[] = [];
  child.onLine((line) => lines.push(line));
  closing.push(async () => {
    child.kill('SIGKILL');
    await child.exited;
  });
  const { code } = await child.exited;
  return { code, stdout: child.stdout, lines };
}

const only = (spans: readonly ReceivedSpan[], operation: string): ReceivedSpan => {
  const found = spans.filter((span) => span.attributes['gen_ai.operation.name'] === operation);
  expect(found.map(({ name }) => name)).toHaveLength(1);
  return found[0] as ReceivedSpan;
};

describe('traces of a run', () => {
  it('hold the run, its model calls and its tool calls under the caller, and tell servers their spans', async () => {
    const collector = await receiver();
    const calls: ToolCall[] = [];
    const server = await FixtureServer.start({
      tools: {
        look: (call) => {
          calls.push(call);
          return { content: [{ type: 'text', text: 'seen' }] };
        },
      },
    });
    closing.push(() => server.stop());
    const model = await startModelServer([
      { kind: 'answer', calls: [{ name: 'box__look', arguments: {} }], usage: { in: 11, out: 7 } },
      { kind: 'answer', text: 'done', usage: { in: 20, out: 3 } },
    ]);
    closing.push(() => model.close());
    const report = join(folder, 'report.json');
    const { code, lines } = await run(
      [
        '--instruction',
        'look',
        '--intelligence',
        model.origin,
        '--model',
        'm1',
        '--mcp',
        `box=${server.url}`,
        '--traceparent',
        `00-${TRACE}-${CALLER}-01`,
        '--report-file',
        report,
      ],
      { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, AGENT_POD_NAME: 'pod-7', AGENT_POD_NAMESPACE: 'ns' },
    );
    expect(code).toBe(0);
    const { spans } = collector;
    expect(new Set(collector.paths)).toEqual(new Set(['/v1/traces']));
    expect(collector.resources[0]).toMatchObject({
      'service.name': 'agentd',
      'service.instance.id': 'pod-7',
      'k8s.namespace.name': 'ns',
    });
    expect(new Set(spans.map(({ traceId }) => traceId))).toEqual(new Set([TRACE]));

    const agent = only(spans, 'invoke_agent');
    expect(agent).toMatchObject({ name: 'invoke_agent pod-7', parentSpanId: CALLER, kind: 1 });
    expect(agent.attributes).toMatchObject({
      'gen_ai.agent.name': 'pod-7',
      'gen_ai.usage.input_tokens': 31,
      'gen_ai.usage.output_tokens': 10,
      'agentd.status': 'completed',
    });

    const chats = spans.filter(({ attributes }) => attributes['gen_ai.operation.name'] === 'chat');
    expect(chats.map(({ name, kind, parentSpanId }) => [name, kind, parentSpanId])).toEqual([
      ['chat m1', 3, agent.spanId],
      ['chat m1', 3, agent.spanId],
    ]);
    expect(chats.map(({ attributes }) => attributes['gen_ai.usage.input_tokens'])).toEqual([11, 20]);
    expect(chats[0]?.attributes['gen_ai.response.model']).toBe('test-model');
    // The endpoint was told the very spans that were exported.
    expect(model.requests.map(({ headers }) => headers.traceparent)).toEqual(
      chats.map(({ spanId }) => `00-${TRACE}-${spanId}-01`),
    );

    const tool = only(spans, 'execute_tool');
    expect(tool).toMatchObject({ name: 'execute_tool look', parentSpanId: agent.spanId });
    expect(tool.attributes).toMatchObject({ 'gen_ai.tool.name': 'look', 'agentd.mcp.server': 'box' });
    expect(calls.map(({ meta }) => meta.traceparent)).toEqual([`00-${TRACE}-${tool.spanId}-01`]);

    for (const span of spans) {
      expect(span.endTimeUnixNano).toBeGreaterThanOrEqual(span.startTimeUnixNano);
      expect(span.status.code ?? 0).toBe(0);
    }
    for (const line of lines) expect(line.trace_id, JSON.stringify(line)).toBe(TRACE);
    const of = (event: string): Line | undefined => lines.find((line) => line.event === event);
    expect(of('tool.result')).toMatchObject({ span_id: tool.spanId, parent_span_id: agent.spanId });
    expect(of('intel.result')).toMatchObject({ span_id: chats[0]?.spanId });
    expect(of('loop.start')).toMatchObject({ span_id: agent.spanId });
    expect(of('subagent.exit')).toMatchObject({ span_id: agent.spanId });
    expect(JSON.parse(await readFile(report, 'utf8'))).toMatchObject({ trace_id: TRACE });
  });

  it('show what failed, and subagents under the agent that asked for them', async () => {
    const collector = await receiver();
    const playbook = join(folder, 'tree.yaml');
    await writeFile(
      playbook,
      `cases:
  - turns:
      - tool: { name: subagent_spawn, arguments: { instruction: "x", max_steps: 1 } }
      - final: done
`,
    );
    const { code } = await run(['--instruction', 'x', '--intelligence', `script:${playbook}`], {
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/v1/traces`,
    });
    expect(code).toBe(0);
    const agents = collector.spans.filter(({ name }) => name.startsWith('invoke_agent'));
    const root = agents.find(({ attributes }) => attributes['agentd.agent_path'] === '0');
    const sub = agents.find(({ attributes }) => attributes['agentd.agent_path'] === '0.1');
    expect(root?.parentSpanId ?? '').toBe('');
    expect(sub).toMatchObject({ traceId: root?.traceId, parentSpanId: root?.spanId, status: { code: 2 } });
    expect(sub?.attributes['error.type']).toBe('exhausted_steps');
  });

  it('are not sent for a caller that does not sample', async () => {
    const collector = await receiver();
    const { code } = await run(
      ['--instruction', 'x', '--intelligence', 'script:final', '--traceparent', `00-${TRACE}-${CALLER}-00`],
      { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url },
    );
    expect(code).toBe(0);
    expect(collector.spans).toEqual([]);
  });
});

describe('a collector that is not there for us', () => {
  const flags = ['--instruction', 'x', '--intelligence', 'script:final:fine', '--drain-timeout', '5s'];

  it.each([
    ['never answers', 'hang'],
    ['refuses', 400],
  ] as const)('changes nothing when it %s, and the end keeps to its budget', async (_what, answer) => {
    const collector = await receiver(answer);
    const { code, stdout, lines } = await run(flags, { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url });
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'fine\n' });
    const done = lines.find(({ event }) => event === 'drain.done');
    expect(done?.unstopped).toEqual([]);
    expect(Number(done?.dur_ms)).toBeLessThan(5_000);
    expect(collector.paths.length).toBeGreaterThan(0);
  });

  it.each([
    ['cannot be reached', { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' }],
    ['has no usable address', { OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4317' }],
    [
      'speaks only gRPC',
      { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1', OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' },
    ],
  ])('is a warning when it %s', async (_what, env) => {
    const { code, stdout, lines } = await run(flags, env);
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'fine\n' });
    expect(lines.filter(({ event }) => event === 'config.warn')).toHaveLength(1);
  });
});

describe('without a place to send traces to', () => {
  it('nothing of OpenTelemetry is loaded', async () => {
    const hook = join(folder, 'opened.cjs');
    await writeFile(
      hook,
      `const { readFileSync } = require('node:fs');
const fs = require('node:fs');
const names = [];
fs.readFileSync = (path, ...rest) => (names.push(String(path)), readFileSync(path, ...rest));
process.on('exit', () => process.stdout.write(JSON.stringify(names)));
`,
    );
    const loaded = (env: Record<string, string>): string =>
      execFileSync(
        process.execPath,
        ['--require', hook, AGENTD, '--instruction', 'x', '--intelligence', 'script:final'],
        {
          env: { PATH: process.env.PATH ?? '', ...env },
          stdio: ['ignore', 'pipe', 'ignore'],
          encoding: 'utf8',
        },
      );
    expect(loaded({})).not.toContain('otlp');
    // The same look does see it where it is wanted.
    expect(loaded({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' })).toContain('otlp');
  });
});
