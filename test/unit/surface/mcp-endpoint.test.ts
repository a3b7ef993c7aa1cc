import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import {
  CallToolRequestSchema,
  ListToolsRequestSchema,
  SubscribeRequestSchema,
  UnsubscribeRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { afterEach, expect, test } from 'vitest';
import { type RunningHttpServer, startHttpServer } from '../../../supervisor/surface/http-server.ts';
import {
  type McpEndpoint,
  type McpEndpointOptions,
  mcpEndpoint,
  type SessionContext,
} from '../../../supervisor/surface/mcp-endpoint.ts';
import { ResourceHub } from '../../../supervisor/surface/resource-hub.ts';
import { eventually } from '../../helpers/eventually.ts';
import { nullLog } from '../../helpers/null-log.ts';
import { connectSdkClient, type TestClient, toolText } from '../../helpers/sdk-client.ts';

interface Running {
  readonly url: string;
  readonly hub: ResourceHub;
  readonly endpoint: McpEndpoint;
  readonly http: RunningHttpServer;
  readonly sessions: SessionContext[];
  /** How many calls of the tool `hang` were aborted. */
  readonly aborted: () => number;
}

const running: Running[] = [];
const clients: TestClient[] = [];
const sockets: Socket[] = [];

afterEach(async () => {
  for (const client of clients.splice(0)) await client.close();
  for (const socket of sockets.splice(0)) socket.destroy();
  for (const each of running.splice(0)) {
    await each.endpoint.close(0);
    await each.http.close(0);
  }
});

async function serve(options: Partial<McpEndpointOptions> = {}): Promise<Running> {
  const hub = new ResourceHub();
  const sessions: SessionContext[] = [];
  let aborted = 0;
  const build = (session: SessionContext): Server => {
    sessions.push(session);
    const server = new Server(
      { name: 'test', version: '1' },
      { capabilities: { tools: {}, resources: { subscribe: true, listChanged: true } } },
    );
    server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: [] }));
    server.setRequestHandler(CallToolRequestSchema, async ({ params }, { signal }) => {
      if (params.name === 'hang') {
        await once(signal, 'abort');
        aborted += 1;
      }
      return { content: [{ type: 'text', text: `${params.name} ${JSON.stringify(params._meta ?? {})}` }] };
    });
    server.setRequestHandler(SubscribeRequestSchema, ({ params }) => {
      session.subscribe(params.uri);
      return {};
    });
    server.setRequestHandler(UnsubscribeRequestSchema, ({ params }) => {
      session.unsubscribe(params.uri);
      return {};
    });
    return server;
  };
  const endpoint = mcpEndpoint({ build, hub, log: nullLog, ...options });
  const http = await startHttpServer({ url: 'http://127.0.0.1:0', routes: endpoint.routes, log: nullLog });
  const result = { url: `${http.url}/mcp`, hub, endpoint, http, sessions, aborted: () => aborted };
  running.push(result);
  return result;
}

async function open(url: string): Promise<TestClient> {
  const client = await connectSdkClient(url);
  clients.push(client);
  return client;
}

const INITIALIZE = {
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'raw', version: '1' } },
};

function post(url: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...headers,
    },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
}

async function initialize(url: string): Promise<string> {
  const response = await post(url, INITIALIZE);
  await response.text();
  return response.headers.get('mcp-session-id') ?? '';
}

test('a client of the official SDK calls tools and hears of the resources it subscribed to', async () => {
  const { url, hub } = await serve();
  const one = await open(url);
  const two = await open(url);
  expect(toolText(await one.client.callTool({ name: 'x', _meta: { 'agent/run_id': 'r' } }))).toContain(
    'agent/run_id',
  );
  await one.client.subscribeResource({ uri: 'x:///1' });
  hub.notifyUpdated('x:///1');
  hub.notifyListChanged();
  await eventually('both notices', () => one.updated.length === 1 && one.listChanges() === 1);
  await eventually('the list change at the other client', () => two.listChanges() === 1);
  expect(two.updated).toEqual([]);
  await one.client.unsubscribeResource({ uri: 'x:///1' });
  hub.notifyUpdated('x:///1');
  hub.notifyListChanged();
  await eventually('the second list change', () => one.listChanges() === 2);
  expect(one.updated).toEqual(['x:///1']);
});

test('what changes before the event stream is open is told once it is', async () => {
  const { url, hub } = await serve();
  const session = await initialize(url);
  const headers = { 'mcp-session-id': session };
  await (await post(url, { jsonrpc: '2.0', method: 'notifications/initialized' }, headers)).text();
  await (
    await post(
      url,
      { jsonrpc: '2.0', id: 1, method: 'resources/subscribe', params: { uri: 'x:///1' } },
      headers,
    )
  ).text();
  hub.notifyUpdated('x:///1');
  const stream = await openStream(url, session);
  expect(await stream.next()).toContain('x:///1');
  await stream.cancel();
});

test('a stream that broke is resumed with what came after the last event seen', async () => {
  const { url, hub } = await serve();
  const session = await initialize(url);
  for (const uri of ['x:///1', 'x:///2']) {
    const message = { jsonrpc: '2.0', id: uri, method: 'resources/subscribe', params: { uri } };
    await (await post(url, message, { 'mcp-session-id': session })).text();
  }
  const first = await openStream(url, session);
  hub.notifyUpdated('x:///1');
  const seen = await first.next();
  hub.notifyUpdated('x:///2');
  // Sent, but this client never looks at it.
  await first.cancel();
  const id = /id: (\d+)/.exec(seen)?.[1] ?? '';
  const second = await openStream(url, session, id);
  const again = await second.next();
  expect(again).toContain('x:///2');
  expect(again).not.toContain('x:///1');
  await second.cancel();
});

test('a reader that stops reading holds one notice per resource, and gets them all when it goes on', async () => {
  const { url, http, hub } = await serve();
  const session = await initialize(url);
  const uris = Array.from({ length: 300 }, (_, index) => `x:///${String(index).padStart(3, '0')}`);
  // A batch, so that three hundred subscriptions are few exchanges.
  for (let start = 0; start < uris.length; start += 50) {
    const batch = uris.slice(start, start + 50).map((uri) => ({
      jsonrpc: '2.0',
      id: uri,
      method: 'resources/subscribe',
      params: { uri },
    }));
    expect((await post(url, batch, { 'mcp-session-id': session })).status).toBe(200);
  }
  const socket = connect(http.port, '127.0.0.1');
  sockets.push(socket);
  let text = '';
  socket.pause();
  socket.write(
    `GET /mcp HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\nmcp-session-id: ${session}\r\n\r\n`,
  );
  // Far more than the kernel's buffers hold of an unread connection.
  const rounds = 300;
  for (let round = 0; round < rounds; round++) {
    for (const uri of uris) hub.notifyUpdated(uri);
    await new Promise((resolve) => setImmediate(resolve));
  }
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });
  socket.resume();
  await eventually('every resource', () => uris.every((uri) => text.includes(uri)));
  const sent = text.split('resources/updated').length - 1;
  expect(sent).toBeLessThan(rounds * uris.length);
});

test('a call the client cancels is aborted and its exchange ends', async () => {
  const { url, aborted } = await serve();
  const session = await initialize(url);
  const headers = { 'mcp-session-id': session };
  const call = post(url, { jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: 'hang' } }, headers);
  const cancel = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 7 } };
  // The cancellation may overtake the call on another connection: it is repeated until it lands.
  await eventually('the abort', async () => {
    await (await post(url, cancel, headers)).text();
    return aborted() === 1;
  });
  expect((await call).status).toBe(202);
  const later = await post(url, { jsonrpc: '2.0', id: 8, method: 'tools/list' }, headers);
  expect(await later.json()).toMatchObject({ id: 8, result: { tools: [] } });
});

test('a session nobody knows is 404, and a client that starts again works', async () => {
  const { url, endpoint } = await serve();
  const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
  const unknown = await post(url, list, { 'mcp-session-id': 'nobody' });
  expect(unknown.status).toBe(404);
  expect(await unknown.json()).toMatchObject({ error: { code: -32001 } });
  const session = await initialize(url);
  const ended = await fetch(url, { method: 'DELETE', headers: { 'mcp-session-id': session } });
  expect(ended.status).toBe(200);
  expect(endpoint.sessionCount).toBe(0);
  expect((await post(url, list, { 'mcp-session-id': session })).status).toBe(404);
  const again = await initialize(url);
  expect((await post(url, list, { 'mcp-session-id': again })).status).toBe(200);
});

test('malformed bodies are JSON-RPC errors', async () => {
  const { url } = await serve();
  const session = await initialize(url);
  const codeOf = async (body: string, headers?: Record<string, string>): Promise<unknown> => {
    const response = await post(url, body, headers);
    expect(response.status).toBe(400);
    return ((await response.json()) as { error: { code: number } }).error.code;
  };
  expect(await codeOf('{"jsonrpc":')).toBe(-32700);
  expect(await codeOf('{"jsonrpc":', { 'mcp-session-id': session })).toBe(-32700);
  expect(await codeOf('{"no":"rpc"}')).toBe(-32600);
  expect(await codeOf('{"no":"rpc"}', { 'mcp-session-id': session })).toBe(-32700);
  expect(await codeOf('{"jsonrpc":"2.0","id":1,"method":"tools/list"}')).toBe(-32000);
  const unknown = await post(
    url,
    { jsonrpc: '2.0', id: 1, method: 'no/such' },
    { 'mcp-session-id': session },
  );
  expect(await unknown.json()).toMatchObject({ id: 1, error: { code: -32601 } });
});

test('a refused initialize leaves no session behind', async () => {
  const { url, endpoint } = await serve();
  const refused = await post(url, INITIALIZE, { accept: 'text/plain' });
  expect(refused.status).toBe(406);
  expect(endpoint.sessionCount).toBe(0);
});

test('an idle session expires, one with an open stream does not', async () => {
  const { url, endpoint } = await serve({ idleMs: 100 });
  const idle = await initialize(url);
  const kept = await initialize(url);
  const stream = await openStream(url, kept);
  await eventually('the idle session to end', () => endpoint.sessionCount === 1);
  const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
  expect((await post(url, list, { 'mcp-session-id': idle })).status).toBe(404);
  expect((await post(url, list, { 'mcp-session-id': kept })).status).toBe(200);
  await stream.cancel();
});

test('sessions beyond the cap are refused with 503 while those before them are in use', async () => {
  const { url } = await serve({ maxSessions: 1 });
  const session = await initialize(url);
  const stream = await openStream(url, session);
  const refused = await post(url, INITIALIZE);
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '5']);
  await stream.cancel();
});

test('a session does not serve a caller with other rights than the one who opened it', async () => {
  const hub = new ResourceHub();
  const build = (): Server => new Server({ name: 'x', version: '1' }, { capabilities: {} });
  const endpoint = mcpEndpoint({ build, hub, access: 'anyone', log: nullLog });
  const http = await startHttpServer({
    url: 'http://127.0.0.1:0',
    routes: endpoint.routes,
    bearer: () => 'secret',
    log: nullLog,
  });
  running.push({ url: '', hub, endpoint, http, sessions: [], aborted: () => 0 });
  const url = `${http.url}/mcp`;
  const opened = await post(url, INITIALIZE, { authorization: 'Bearer secret' });
  const session = opened.headers.get('mcp-session-id') ?? '';
  const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };
  expect((await post(url, ping, { 'mcp-session-id': session })).status).toBe(404);
  const allowed = await post(url, ping, { 'mcp-session-id': session, authorization: 'Bearer secret' });
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

interface RawStream {
  /** The next event's text. */
  next(): Promise<string>;
  cancel(): Promise<void>;
}

async function openStream(url: string, session: string, lastEventId?: string): Promise<RawStream> {
  const response = await fetch(url, {
    headers: {
      accept: 'text/event-stream',
      'mcp-session-id': session,
      ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }),
    },
  });
  expect(response.status).toBe(200);
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  return {
    next: async () => {
      while (!text.includes('\n\n')) {
        const chunk = await reader?.read();
        if (chunk?.value === undefined) throw new Error(`the stream ended after: ${text}`);
        text += chunk.value;
      }
      const end = text.indexOf('\n\n');
      const event = text.slice(0, end);
      text = text.slice(end + 2);
      return event;
    },
    cancel: async () => {
      await reader?.cancel();
    },
  };
}
