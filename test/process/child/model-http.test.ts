import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, test } from 'vitest';
import type { ModelBlock, RunStart } from '../../../protocol/frames.ts';
import { type ModelServer, type ServerStep, startModelServer } from '../../fixtures/model-server.ts';
import { DrivenChild, type DriverOptions, runStart } from '../../helpers/child-driver.ts';

const children: DrivenChild[] = [];
const servers: ModelServer[] = [];
const TOKEN = 'sk-very-secret-token';

async function serve(...steps: [ServerStep, ...ServerStep[]]): Promise<ModelServer> {
  const server = await startModelServer(steps);
  servers.push(server);
  return server;
}

interface Setup {
  readonly model?: Partial<ModelBlock>;
  readonly run?: Partial<RunStart>;
  readonly driver?: DriverOptions;
}

function startRun(urls: readonly string[], setup: Setup = {}): DrivenChild {
  const child = new DrivenChild(setup.driver);
  children.push(child);
  const endpoints = urls.map((url) => ({ url, token: TOKEN }));
  const model = { endpoints, model: 'wanted-model', timeout_ms: 30_000, max_attempts: 2, ...setup.model };
  child.send(runStart('unused', { model, ...setup.run }));
  return child;
}

/** A port nobody listens on. */
async function closedPort(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}/v1`;
}

function modelCalls(child: DrivenChild) {
  return child.frames.flatMap((frame) =>
    frame.type === 'notification' && frame.body.method === 'run.progress' && frame.body.params.call
      ? [frame.body.params.call]
      : [],
  );
}

afterEach(async () => {
  for (const child of children.splice(0)) await child.stop();
  for (const server of servers.splice(0)) await server.close();
});

describe('a real child and a real model endpoint', () => {
  test.each(['/v1', '/v1/messages'])('works on a task through tools at %s', async (path) => {
    const server = await serve(
      {
        kind: 'answer',
        text: 'looking',
        calls: [
          { name: 'test__echo', arguments: { n: 1 } },
          { name: 'test__echo', arguments: { n: 2 } },
        ],
        usage: { in: 100, out: 10 },
      },
      { kind: 'answer', text: 'both done', usage: { in: 150, out: 5 } },
    );
    const child = startRun([server.origin + path]);
    expect(await child.result()).toEqual({
      run_id: 'run-1',
      status: 'completed',
      result: 'both done',
      has_usable_partial: false,
      usage: { tokens_in: 250, tokens_out: 15, steps: 2, subagents: 0 },
    });
    expect(server.requests.map((request) => request.path)).toEqual(
      path === '/v1' ? ['/v1/chat/completions', '/v1/chat/completions'] : ['/v1/messages', '/v1/messages'],
    );
    const [first, second] = server.requests;
    expect(first?.headers[path === '/v1' ? 'authorization' : 'x-api-key']).toContain(TOKEN);
    expect(first?.headers.traceparent).toMatch(/^00-0123456789abcdef0123456789abcdef-[0-9a-f]{16}-01$/);
    expect(first?.headers.traceparent).not.toBe(second?.headers.traceparent);
    expect(first?.body.model).toBe('wanted-model');
    // The results of both calls went back, on the same connection.
    expect(JSON.stringify(second?.body)).toContain('{\\"n\\":2}');
    expect(second?.connection).toBe(first?.connection);
    expect(modelCalls(child)).toMatchObject([
      { ok: true, tokens_in: 100, tokens_out: 10, endpoint: 0 },
      { ok: true, tokens_in: 150, tokens_out: 5, endpoint: 0 },
    ]);
  });

  test.each<[string, ServerStep, string]>([
    ['a 500', { kind: 'status', status: 500 }, '5xx'],
    ['a 429 with Retry-After', { kind: 'status', status: 429, retryAfter: '0' }, 'other'],
    ['a reset connection', { kind: 'reset' }, 'unreachable'],
    ['a body that is not JSON', { kind: 'raw', body: '<html>oops' }, 'other'],
    ['a body of another API', { kind: 'raw', body: '{"hello":1}' }, 'other'],
  ])('%s is tried again and then answered', async (_what, fault, reason) => {
    const server = await serve(fault, { kind: 'answer', text: 'fine' });
    const child = startRun([server.origin]);
    expect(await child.result()).toMatchObject({ status: 'completed', result: 'fine' });
    expect(modelCalls(child)).toMatchObject([{ ok: false, reason }, { ok: true }]);
  });

  test.each<[string, ServerStep]>([
    ['an endpoint that takes the request and never answers', { kind: 'hang' }],
    ['an answer that stops half-way', { kind: 'stall' }],
  ])('%s runs into the timeout and is tried again', async (_what, fault) => {
    const server = await serve(fault, { kind: 'answer', text: 'fine' });
    const child = startRun([server.origin], { model: { timeout_ms: 1000 } });
    expect(await child.result()).toMatchObject({ status: 'completed' });
    expect(modelCalls(child)[0]).toMatchObject({ ok: false, reason: 'timeout' });
  });

  test('an answer past the size cap is not read to its end', async () => {
    const server = await serve({ kind: 'huge', bytes: 20 * 1024 * 1024 }, { kind: 'answer', text: 'fine' });
    const child = startRun([server.origin]);
    expect(await child.result()).toMatchObject({ status: 'completed' });
  });

  test('the next endpoint takes over within the run, and stays', async () => {
    const dead = await closedPort();
    const server = await serve(
      { kind: 'answer', calls: [{ name: 'test__echo', arguments: {} }] },
      { kind: 'answer', text: 'from the second' },
    );
    const child = startRun([dead, server.origin]);
    expect(await child.result()).toMatchObject({ status: 'completed', result: 'from the second' });
    expect(modelCalls(child).map((call) => [call.endpoint, call.ok])).toEqual([
      [0, false],
      [0, false],
      [1, true],
      [1, true],
    ]);
  });

  test('a refused credential is final: one request, crashed, intelligence failed, the token nowhere', async () => {
    const server = await serve({ kind: 'status', status: 401 });
    const child = startRun([server.origin]);
    const result = await child.result();
    expect(result).toMatchObject({
      status: 'crashed',
      intelligence_failed: true,
      error: { type: 'INTELLIGENCE_AUTH' },
    });
    expect(result.error?.message).toContain('it answered 401: refused, you sent Bearer [credential]');
    expect(server.requests).toHaveLength(1);
    await child.exited;
    expect(JSON.stringify(child.frames) + child.stderr).not.toContain(TOKEN);
  });

  test('no endpoint up: crashed and intelligence failed, after the attempts there are', async () => {
    const child = startRun([await closedPort(), await closedPort()], { model: { max_attempts: 1 } });
    const result = await child.result();
    expect(result).toMatchObject({
      status: 'crashed',
      intelligence_failed: true,
      error: { type: 'INTELLIGENCE_UNREACHABLE' },
    });
    expect(result.error?.message).toMatch(/ECONNREFUSED/);
    expect(result.error?.message).not.toMatch(/\n\s+at /);
    expect(modelCalls(child).map((call) => call.endpoint)).toEqual([0, 1]);
  });

  test('a request every endpoint rejects is not blamed on the endpoint', async () => {
    const server = await serve({ kind: 'status', status: 404, message: 'unknown model wanted-model' });
    const result = await startRun([server.origin]).result();
    expect(result).toMatchObject({ status: 'crashed', error: { type: 'INTELLIGENCE_REJECTED' } });
    expect(result.intelligence_failed).toBeUndefined();
    expect(result.error?.message).toContain('unknown model wanted-model');
  });

  test('an endpoint with a certificate of its own authority is reached with tls_ca, and without it is not', async () => {
    const file = (name: string): string =>
      fileURLToPath(new URL(`../../fixtures/surface/${name}`, import.meta.url));
    const tls = {
      cert: readFileSync(file('server.cert.pem')),
      key: readFileSync(file('server.key.pem')),
    };
    const server = await startModelServer([{ kind: 'answer', text: 'over TLS' }], tls);
    servers.push(server);
    const trusting = startRun([server.origin], { model: { tls_ca: file('authority.cert.pem') } });
    expect(await trusting.result()).toMatchObject({ status: 'completed', result: 'over TLS' });
    const wary = startRun([server.origin], { model: { max_attempts: 3 } });
    expect(await wary.result()).toMatchObject({ status: 'crashed', intelligence_failed: true });
    // Asking again cannot help: it is asked once.
    expect(modelCalls(wary)).toMatchObject([{ ok: false, reason: 'unreachable' }]);
  });

  test('the extra authorities of the environment are trusted too, and ignored when they cannot be read', async () => {
    const file = (name: string): string =>
      fileURLToPath(new URL(`../../fixtures/surface/${name}`, import.meta.url));
    const tls = {
      cert: readFileSync(file('server.cert.pem')),
      key: readFileSync(file('server.key.pem')),
    };
    const server = await startModelServer([{ kind: 'answer', text: 'over TLS' }], tls);
    servers.push(server);
    const env = (path: string): NodeJS.ProcessEnv => ({
      PATH: process.env.PATH ?? '',
      AGENTD_EXTRA_CA_CERTS: path,
    });
    const trusting = startRun([server.origin], { driver: { env: env(file('authority.cert.pem')) } });
    expect(await trusting.result()).toMatchObject({ status: 'completed', result: 'over TLS' });
    const wary = startRun([server.origin], { driver: { env: env('/no/such/extra.pem') } });
    expect(await wary.result()).toMatchObject({ status: 'crashed', intelligence_failed: true });
    await wary.exited;
    expect(wary.stderr).toContain('/no/such/extra.pem');
  });

  test('an authority file that is not there is named', async () => {
    const server = await serve({ kind: 'answer', text: 'x' });
    const result = await startRun([server.origin], { model: { tls_ca: '/no/such/ca.pem' } }).result();
    expect(result.status).toBe('crashed');
    expect(result.error?.message).toContain('/no/such/ca.pem');
  });

  test('malformed calls are answered with errors the model can act on', async () => {
    const server = await serve(
      {
        kind: 'answer',
        calls: [
          { name: 'test__echo', arguments: '{"broken": ' },
          { name: 'made up!', arguments: {} },
        ],
      },
      { kind: 'raw', body: '{"choices":[]}' },
      { kind: 'answer', text: 'recovered' },
    );
    const child = startRun([server.origin]);
    expect(await child.result()).toMatchObject({ status: 'completed', result: 'recovered' });
    const body = JSON.stringify(server.requests[1]?.body);
    expect(body).toContain('the arguments are not valid JSON');
    expect(body).toContain('there is no tool');
    expect(body).toContain('"made_up_"');
  });

  test('a cancel and a deadline end a run whose model hangs, and the connection with it', async () => {
    const server = await serve({ kind: 'hang' });
    const cancelled = startRun([server.origin]);
    await server.seen(1);
    cancelled.send({ method: 'run.cancel', params: { run_id: 'run-1', reason: 'x' } });
    expect((await cancelled.result()).status).toBe('cancelled');
    const limits = { max_steps: 5, max_tokens: 100, deadline_ms: 500, tool_timeout_ms: 1000 };
    const late = startRun([server.origin], { run: { limits } });
    expect((await late.result()).status).toBe('deadline');
    expect((await late.exited).code).toBe(0);
  });

  test('a cancel ends the wait for a retry', async () => {
    const server = await serve({ kind: 'status', status: 429, retryAfter: '50' });
    const child = startRun([server.origin]);
    await child.notification('run.progress', (p) => p.call !== undefined);
    child.send({ method: 'run.cancel', params: { run_id: 'run-1', reason: 'x' } });
    expect((await child.result()).status).toBe('cancelled');
  });

  test('an answer cut at its length limit is asked to go on, one that is declined is refused', async () => {
    const cut = await serve(
      { kind: 'answer', text: 'the first half', finish: 'length' },
      { kind: 'answer', text: 'all of it' },
    );
    expect(await startRun([cut.origin]).result()).toMatchObject({ status: 'completed', result: 'all of it' });
    for (const path of ['/v1', '/v1/messages']) {
      const filtered = await serve({ kind: 'answer', text: 'I will not', finish: 'content_filter' });
      const result = await startRun([filtered.origin + path]).result();
      expect(result).toMatchObject({ status: 'refused', result: 'I will not' });
    }
  });

  test('an output contract is put to the model, and its repair accepted', async () => {
    const server = await serve(
      { kind: 'answer', text: 'It is forty-two.' },
      { kind: 'answer', text: '{"answer": 42}' },
    );
    const output_contract = {
      type: 'object',
      properties: { answer: { type: 'integer' } },
      required: ['answer'],
    };
    const result = await startRun([server.origin], { run: { output_contract } }).result();
    expect(result).toMatchObject({ status: 'completed', result: '{"answer":42}' });
    expect(JSON.stringify(server.requests[0]?.body)).toContain('JSON Schema');
  });

  test('a contract that cannot be checked crashes the run, by name', async () => {
    const server = await serve({ kind: 'answer', text: 'x' });
    const result = await startRun([server.origin], { run: { output_contract: { if: {} } } }).result();
    expect(result).toMatchObject({ status: 'crashed', error: { type: 'OUTPUT_CONTRACT_INVALID' } });
    expect(server.requests).toHaveLength(0);
  });
});
