import { readFileSync } from 'node:fs';
import { afterAll, describe, expect, it } from 'vitest';
import { FixtureServer } from '../../fixtures/mcp/fixture-server.ts';
import { startModelServer } from '../../fixtures/model-server.ts';
import { supervisedBy } from '../../helpers/leftovers.ts';
import { connectSdkClient } from '../../helpers/sdk-client.ts';
import { Binary, runBinary } from '../support/binary.ts';
import { expectContractLines } from '../support/lines.ts';
import { probe } from '../support/scrape.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** Credentials appear nowhere (invariant 9); content appears as hash and length unless asked for. */
const folder = temporaryFolder();
const SECRETS = {
  AGENT_INTELLIGENCE_TOKEN: 'sk-canary-of-the-model',
  MCP_TOKEN: 'canary-of-the-mcp-server',
  OPERATOR_TOKEN: 'canary-of-the-operator',
};
const closing: (() => Promise<unknown>)[] = [];
afterAll(() => Promise.all(closing.map((close) => close())));

function expectSilent(where: string, text: string): void {
  for (const [name, secret] of Object.entries(SECRETS)) {
    expect(text.includes(secret), `${name} in ${where}`).toBe(false);
  }
}

describe('a credential', () => {
  it('is in nothing that leaves the process, whatever goes wrong', async () => {
    // Each failure quotes the credential it was sent; then it works, and the run hangs.
    const model = await startModelServer([
      { kind: 'status', status: 500 },
      { kind: 'status', status: 429, retryAfter: '0' },
      { kind: 'answer', calls: [{ name: 'src__leak', arguments: { note: 'x' } }], usage: { in: 5, out: 5 } },
      { kind: 'hang' },
    ]);
    const source = await FixtureServer.start({
      authorization: `Bearer ${SECRETS.MCP_TOKEN}`,
      tools: {
        leak: () => ({
          isError: true,
          content: [{ type: 'text', text: `you sent Bearer ${SECRETS.MCP_TOKEN}` }],
        }),
      },
    });
    closing.push(model.close, () => source.stop());
    const report = folder.path('report.json');
    const config = folder.file(
      'agentd.yaml',
      `agent: { name: probe, instruction: work }
intelligence: { endpoints: [ "${model.origin}" ] }
mcp: { servers: [ { name: src, endpoint: "${source.url}", headers: { Authorization: "Bearer {{secret:MCP_TOKEN}}" } } ] }
serve: { mcp: "http://127.0.0.1:0", bearer: "{{secret:OPERATOR_TOKEN}}" }
`,
    );
    const flags = [
      '--config',
      config,
      '--metrics-addr',
      '127.0.0.1:0',
      '--log-level',
      'trace',
      '--report-file',
      report,
    ];
    const env = { ...SECRETS, AGENT_DRAIN_TIMEOUT: '2s' };
    const run = new Binary(['run', ...flags], env);
    const ready = await run.ready();
    await model.seen(4);
    const operator = await connectSdkClient(String(ready.management_url), {
      authorization: `Bearer ${SECRETS.OPERATOR_TOKEN}`,
    });
    for (const name of [
      'capabilities',
      'status',
      'inventory',
      'capacity',
      'intelligence',
      'metrics',
      'events',
      'config/effective',
      'subagent/0',
    ]) {
      expectSilent(name, JSON.stringify(await operator.client.readResource({ uri: `agent://${name}` })));
    }
    await operator.close();
    expectSilent('/metrics', (await probe(String(ready.metrics_url), '/metrics')).body);
    expectSilent('/readyz', (await probe(String(ready.metrics_url), '/readyz')).body);
    expectSilent('the command line', readFileSync(`/proc/${run.pid}/cmdline`, 'utf8'));
    const children = supervisedBy(run.pid);
    expect(children.length).toBeGreaterThan(0);
    for (const pid of children) {
      for (const file of ['environ', 'cmdline'])
        expectSilent(`${file} of a child`, readFileSync(`/proc/${pid}/${file}`, 'utf8'));
    }
    expect(await run.stop()).toEqual({ code: 0, signal: null });
    expectSilent('standard output', run.stdout);
    expectSilent('standard error', run.stderr);
    expectSilent('the report', readFileSync(report, 'utf8'));
    // It was really used, and the failures were really told.
    expect(model.requests[0]?.headers.authorization).toBe(`Bearer ${SECRETS.AGENT_INTELLIGENCE_TOKEN}`);
    expect(run.named('intel.result').filter(({ err }) => err !== undefined).length).toBeGreaterThan(1);
    expect(run.named('tool.result').length).toBeGreaterThan(0);
    expectContractLines(run);
    for (const print of ['--capabilities', '--validate-config']) {
      const printed = await runBinary(['run', ...flags, print], env);
      expect(printed.exit.code).toBe(0);
      expectSilent(print, printed.stdout + printed.stderr);
    }
  });
});

describe('a token file that turns into something no header can carry', () => {
  it('costs the runs that would need it, by its name, and nothing else; exit 2 where it is so at the start', async () => {
    const model = await startModelServer([{ kind: 'answer', text: 'fine' }]);
    closing.push(model.close);
    const token = folder.file('rotating-token', 'canary-good\n');
    const flags = ['--intelligence', model.origin, '--intelligence-token-file', token, '--model', 'm'];
    const daemon = new Binary(['supervise', '--instruction', 'x', '--interval', '200ms', ...flags]);
    closing.push(() => daemon.stop());
    await daemon.line(
      'a run that works',
      ({ event, status }) => event === 'subagent.exit' && status === 'completed',
    );
    folder.file('rotating-token', 'canary-bad\ncanary-worse\n');
    const refused = await daemon.line(
      'the refusal',
      ({ event, status }) => event === 'subagent.exit' && status === 'crashed',
    );
    expect(refused.err).toEqual({
      type: 'ModelConfiguration',
      message: `secret file ${token} holds a line break, so no HTTP header can carry it`,
    });
    const asked = model.requests.length;
    folder.file('rotating-token', 'canary-good\n');
    await model.seen(asked + 1);
    expect(new Set(model.requests.map(({ headers }) => headers.authorization))).toEqual(
      new Set(['Bearer canary-good']),
    );
    expect(await daemon.stop()).toEqual({ code: 0, signal: null });
    expect(daemon.stderr).not.toContain('canary');
    expect(daemon.named('intel.result').filter(({ err }) => err !== undefined)).toEqual([]);

    folder.file('rotating-token', 'canary-bad\ncanary-worse\n');
    const run = await runBinary(['run', 'x', ...flags]);
    expect(run.exit.code).toBe(2);
    expect(run.named('config.invalid')).toHaveLength(1);
    expect(JSON.stringify(run.named('config.invalid'))).toContain(token);
    expect(run.stderr).not.toContain('canary');
  });
});

describe('content', () => {
  it.each([
    ['as hash and length only', [], false],
    ['itself with --log-content', ['--log-content'], true],
  ])('is logged %s', async (_how, flags, shown) => {
    const source = await FixtureServer.start({
      tools: { look: () => ({ content: [{ type: 'text', text: 'canary-result' }] }) },
    });
    closing.push(() => source.stop());
    const playbook = folder.file(
      `content-${shown}.yaml`,
      'turns: [ { tool: { name: src__look, arguments: { q: canary-argument } } }, { final: canary-answer } ]',
    );
    const run = await runBinary([
      ...['run', 'canary-prompt', '--intelligence', `script:${playbook}`, '--mcp', `src=${source.url}`],
      ...['--log-level', 'trace', ...flags],
    ]);
    expect(run.exit.code).toBe(0);
    expect(run.stdout).toBe('canary-answer\n');
    const seen = ['canary-prompt', 'canary-argument', 'canary-result', 'canary-answer'].filter((text) =>
      run.stderr.includes(text),
    );
    expect(seen).toHaveLength(shown ? 4 : 0);
    expect(run.stderr.includes('sha256')).toBe(!shown);
    expectContractLines(run);
  });
});
