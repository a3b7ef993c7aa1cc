import { readFileSync } from 'node:fs';
import type { ClientRequest } from 'node:http';
import { request as httpsRequest, type RequestOptions } from 'node:https';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { FetchLike } from '@modelcontextprotocol/sdk/shared/transport.js';
import { execa } from 'execa';
import { Agent, fetch as undiciFetch } from 'undici';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Binary } from '../support/binary.ts';
import { expectContractLines } from '../support/lines.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** Who may talk to a real supervisor over TLS, and what becomes of bad requests. */
const folder = temporaryFolder();
const TOKEN = 'the-operator-token';
let supervisor: Binary;
let url = new URL('https://localhost');
/** Started first: a client that sends half a body and then nothing. */
let slow: Promise<number> = Promise.resolve(0);
const closing: (() => Promise<unknown>)[] = [];

const openssl = (...args: string[]): Promise<unknown> => execa('openssl', args);
const pem = (name: string): Buffer => readFileSync(folder.path(name));

/** A key and a certificate: of an authority of its own without `issuer`. */
async function certificate(name: string, issuer?: string): Promise<void> {
  const names = folder.file(`${name}.ext`, 'subjectAltName=DNS:localhost,IP:127.0.0.1\n');
  const key = [
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:prime256v1',
    '-nodes',
    '-keyout',
    folder.path(`${name}.key`),
  ];
  const subject = ['-subj', `/CN=${name}`];
  if (issuer === undefined) {
    await openssl('req', '-x509', ...key, ...subject, '-days', '2', '-out', folder.path(`${name}.pem`));
    return;
  }
  await openssl('req', ...key, ...subject, '-out', folder.path(`${name}.csr`));
  await openssl(
    ...['x509', '-req', '-in', folder.path(`${name}.csr`), '-days', '2', '-extfile', names],
    ...['-CA', folder.path(`${issuer}.pem`), '-CAkey', folder.path(`${issuer}.key`), '-CAcreateserial'],
    ...['-out', folder.path(`${name}.pem`)],
  );
}

beforeAll(async () => {
  await Promise.all([certificate('authority'), certificate('stranger')]);
  await certificate('server', 'authority');
  await certificate('operator', 'authority');
  await certificate('impostor', 'stranger');
  supervisor = new Binary(
    [
      ...['supervise', '--interval', '1h', '--instruction', 'x', '--intelligence', 'script:final'],
      ...['--serve-mcp', 'https://127.0.0.1:0', '--serve-cert', folder.path('server.pem')],
      ...['--serve-key', folder.path('server.key'), '--serve-client-ca', folder.path('authority.pem')],
      ...['--serve-bearer', '{{secret:TOKEN}}'],
    ],
    { TOKEN },
  );
  url = new URL(String((await supervisor.ready()).management_url));
  slow = status({ method: 'POST', headers: { ...AUTHORIZED, 'content-length': 1_000 } }, (request) =>
    request.write('{"half":'),
  );
});
afterAll(async () => {
  for (const close of closing) await close();
  await supervisor?.stop();
});

const AUTHORIZED = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' };

/** The status of one request, and the body. */
async function answer(
  options: RequestOptions,
  send: (request: ClientRequest) => void,
): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const request = httpsRequest({
      ca: pem('authority.pem'),
      agent: false,
      servername: 'localhost',
      host: url.hostname,
      port: url.port,
      path: url.pathname,
      ...options,
    });
    request.once('error', reject);
    request.once('response', (response) => {
      let body = '';
      response.on('data', (chunk: Buffer) => {
        body += chunk.toString();
      });
      response.once('close', () => resolve({ status: response.statusCode ?? 0, body }));
    });
    send(request);
  });
}
const status = async (options: RequestOptions, send: (request: ClientRequest) => void): Promise<number> =>
  (await answer(options, send)).status;
const post = (body: string, headers: Record<string, string> = AUTHORIZED) =>
  answer({ method: 'POST', headers }, (request) => request.end(body));

/** Asks for the status as a client of the SDK, with that certificate and those headers. */
async function ask(certified: string | null, headers: Record<string, string> = {}): Promise<unknown> {
  const own = certified === null ? {} : { cert: pem(`${certified}.pem`), key: pem(`${certified}.key`) };
  const dispatcher = new Agent({ connect: { ca: pem('authority.pem'), ...own } });
  const fetch: FetchLike = (to, init) =>
    undiciFetch(to, { ...(init as object), dispatcher }) as unknown as Promise<Response>;
  const client = new Client({ name: 'test', version: '1' });
  closing.push(() => dispatcher.destroy());
  try {
    await client.connect(new StreamableHTTPClientTransport(url, { fetch, requestInit: { headers } }));
    return (await client.callTool({ name: 'status', arguments: {} })).structuredContent;
  } finally {
    await client.close();
  }
}

describe('the management listener of a running supervisor', () => {
  it('takes a certificate of its authority, or its token', async () => {
    expect(await ask('operator')).toMatchObject({ ready: true });
    expect(await ask(null, { authorization: `Bearer ${TOKEN}` })).toMatchObject({ ready: true });
  });

  it.each([
    ['nothing', null, {}],
    ['a wrong token', null, { authorization: 'Bearer the-operator-tokem' }],
    ['an empty token', null, { authorization: 'Bearer ' }],
    ['the certificate of a stranger', 'impostor', {}],
  ])('answers 401 to %s', async (_who, certified, headers: Record<string, string>) => {
    await expect(ask(certified, headers)).rejects.toMatchObject({ code: 401 });
    const refused = await post('{"jsonrpc":"2.0","id":1,"method":"a2a.Drain"}', {
      ...AUTHORIZED,
      authorization: '',
      ...headers,
    });
    expect(refused.status).toBe(401);
    expect(JSON.parse(refused.body)).toMatchObject({ jsonrpc: '2.0', error: { code: -32000 }, id: null });
    expect(supervisor.named('drain.start')).toEqual([]);
  });

  it.each([
    ['a body that is no JSON', '{"jsonrpc": ', 400, -32700],
    ['JSON that is no JSON-RPC', '{"hello": "world"}', 400, -32600],
    ['a call before initialize', '{"jsonrpc":"2.0","id":1,"method":"tools/list"}', 400, -32000],
  ])('answers %s with the code that says so', async (_what, body, wanted, code) => {
    const refused = await post(body, { ...AUTHORIZED, accept: 'application/json, text/event-stream' });
    expect(refused.status).toBe(wanted);
    expect(JSON.parse(refused.body)).toMatchObject({ jsonrpc: '2.0', error: { code } });
  });

  it('answers 413 to a huge body without reading it, declared or not', async () => {
    const declared = { ...AUTHORIZED, 'content-length': String(64 * 1024 * 1024) };
    expect(await status({ method: 'POST', headers: declared }, (request) => request.flushHeaders())).toBe(
      413,
    );
    const chunk = Buffer.alloc(1024 * 1024, ' ');
    const flood = (request: ClientRequest): void => {
      for (let sent = 0; sent < 5; sent += 1) request.write(chunk);
    };
    expect(await status({ method: 'POST', headers: AUTHORIZED }, flood)).toBe(413);
  });

  it('answers 403 to a Host or an Origin that is not its own', async () => {
    expect((await post('{}', { ...AUTHORIZED, host: 'rebound.example' })).status).toBe(403);
    expect((await post('{}', { ...AUTHORIZED, origin: 'https://page.example' })).status).toBe(403);
  });

  it('answers 408 to half a body, and has worked on for everybody else', async () => {
    expect(await slow).toBe(408);
    expect(await ask('operator')).toMatchObject({ ready: true });
    expectContractLines(supervisor);
    expect(supervisor.stderr).not.toContain(TOKEN);
  });
});
