import { afterEach, expect, test } from 'vitest';
import { eventually } from '../../helpers/eventually.ts';
import {
  openSession,
  openStream,
  postInitialize,
  postMessage,
  type ServedEndpoint,
  serveEndpoint,
} from '../../helpers/mcp-endpoint-harness.ts';
import { connectSdkClient, type TestClient } from '../../helpers/sdk-client.ts';

const running: ServedEndpoint[] = [];
const clients: TestClient[] = [];

afterEach(async () => {
  for (const client of clients.splice(0)) await client.close();
  for (const each of running.splice(0)) await each.close();
});

async function serve(options: Parameters<typeof serveEndpoint>[0] = {}): Promise<ServedEndpoint> {
  const served = await serveEndpoint(options);
  running.push(served);
  return served;
}

async function open(url: string): Promise<TestClient> {
  const client = await connectSdkClient(url);
  clients.push(client);
  return client;
}

test('a call the client cancels is aborted and its exchange ends', async () => {
  const { url, aborted } = await serve();
  const session = await openSession(url);
  const headers = { 'mcp-session-id': session };
  const call = postMessage(
    url,
    { jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: 'hang' } },
    headers,
  );
  const cancel = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 7 } };
  // The cancellation may overtake the call on another connection: it is repeated until it lands.
  await eventually('the abort', async () => {
    await (await postMessage(url, cancel, headers)).text();
    return aborted() === 1;
  });
  expect((await call).status).toBe(202);
  const later = await postMessage(url, { jsonrpc: '2.0', id: 8, method: 'tools/list' }, headers);
  expect(await later.json()).toMatchObject({ id: 8, result: { tools: [] } });
});

test('a session nobody knows is 404, and a client that starts again works', async () => {
  const { url, endpoint } = await serve();
  const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
  const unknown = await postMessage(url, list, { 'mcp-session-id': 'nobody' });
  expect(unknown.status).toBe(404);
  expect(await unknown.json()).toMatchObject({ error: { code: -32001 } });
  const session = await openSession(url);
  const ended = await fetch(url, { method: 'DELETE', headers: { 'mcp-session-id': session } });
  expect(ended.status).toBe(200);
  expect(endpoint.sessionCount).toBe(0);
  expect((await postMessage(url, list, { 'mcp-session-id': session })).status).toBe(404);
  const again = await openSession(url);
  expect((await postMessage(url, list, { 'mcp-session-id': again })).status).toBe(200);
});

test('malformed bodies are JSON-RPC errors', async () => {
  const { url } = await serve();
  const session = await openSession(url);
  const codeOf = async (body: string, headers?: Record<string, string>): Promise<unknown> => {
    const response = await postMessage(url, body, headers);
    expect(response.status).toBe(400);
    return ((await response.json()) as { error: { code: number } }).error.code;
  };
  expect(await codeOf('{"jsonrpc":')).toBe(-32700);
  expect(await codeOf('{"jsonrpc":', { 'mcp-session-id': session })).toBe(-32700);
  expect(await codeOf('{"no":"rpc"}')).toBe(-32600);
  expect(await codeOf('{"no":"rpc"}', { 'mcp-session-id': session })).toBe(-32700);
  expect(await codeOf('{"jsonrpc":"2.0","id":1,"method":"tools/list"}')).toBe(-32000);
  const unknown = await postMessage(
    url,
    { jsonrpc: '2.0', id: 1, method: 'no/such' },
    { 'mcp-session-id': session },
  );
  expect(await unknown.json()).toMatchObject({ id: 1, error: { code: -32601 } });
});

test('a refused initialize leaves no session behind', async () => {
  const { url, endpoint } = await serve();
  const refused = await postInitialize(url, { accept: 'text/plain' });
  expect(refused.status).toBe(406);
  expect(endpoint.sessionCount).toBe(0);
});

test('an idle session expires, one with an open stream does not', async () => {
  const { url, endpoint } = await serve({ idleMs: 100 });
  const idle = await openSession(url);
  const kept = await openSession(url);
  const stream = await openStream(url, kept);
  await eventually('the idle session to end', () => endpoint.sessionCount === 1);
  const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
  expect((await postMessage(url, list, { 'mcp-session-id': idle })).status).toBe(404);
  expect((await postMessage(url, list, { 'mcp-session-id': kept })).status).toBe(200);
  await stream.cancel();
});

test('sessions beyond the cap are refused with 503 while those before them are in use', async () => {
  const { url } = await serve({ maxSessions: 1 });
  const session = await openSession(url);
  const stream = await openStream(url, session);
  const refused = await postInitialize(url);
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '5']);
  await stream.cancel();
});

test('a session does not serve a caller with other rights than the one who opened it', async () => {
  const { url } = await serve({ access: 'anyone', bearer: () => 'secret' });
  const opened = await postInitialize(url, { authorization: 'Bearer secret' });
  const session = opened.headers.get('mcp-session-id') ?? '';
  const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };
  expect((await postMessage(url, ping, { 'mcp-session-id': session })).status).toBe(404);
  const allowed = await postMessage(url, ping, { 'mcp-session-id': session, authorization: 'Bearer secret' });
  expect(allowed.status).toBe(200);
});

test('closing aborts calls that do not end within the budget and ends streams', async () => {
  const { url, endpoint, http, aborted } = await serve();
  const client = await open(url);
  const call = client.client.callTool({ name: 'hang' }).then(
    () => 'answered',
    () => 'failed',
  );
  await eventually('the call to arrive', async () => {
    await client.client.ping();
    return endpoint.sessionCount === 1;
  });
  await endpoint.close(50);
  await http.close(50);
  expect(await call).toBe('failed');
  await eventually('the abort of the call', () => aborted() === 1);
  expect(endpoint.sessionCount).toBe(0);
});
