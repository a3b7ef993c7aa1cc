import { connect, type Socket } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { eventually } from '../../helpers/eventually.ts';
import {
  openSession,
  openStream,
  postMessage,
  type ServedEndpoint,
  serveEndpoint,
} from '../../helpers/mcp-endpoint-harness.ts';
import { connectSdkClient, type TestClient, toolText } from '../../helpers/sdk-client.ts';

const running: ServedEndpoint[] = [];
const clients: TestClient[] = [];
const sockets: Socket[] = [];

afterEach(async () => {
  for (const client of clients.splice(0)) await client.close();
  for (const socket of sockets.splice(0)) socket.destroy();
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
  const session = await openSession(url);
  const headers = { 'mcp-session-id': session };
  await (await postMessage(url, { jsonrpc: '2.0', method: 'notifications/initialized' }, headers)).text();
  await (
    await postMessage(
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
  const session = await openSession(url);
  for (const uri of ['x:///1', 'x:///2']) {
    const message = { jsonrpc: '2.0', id: uri, method: 'resources/subscribe', params: { uri } };
    await (await postMessage(url, message, { 'mcp-session-id': session })).text();
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
  const session = await openSession(url);
  const uris = Array.from({ length: 300 }, (_, index) => `x:///${String(index).padStart(3, '0')}`);
  // A batch, so that three hundred subscriptions are few exchanges.
  for (let start = 0; start < uris.length; start += 50) {
    const batch = uris.slice(start, start + 50).map((uri) => ({
      jsonrpc: '2.0',
      id: uri,
      method: 'resources/subscribe',
      params: { uri },
    }));
    expect((await postMessage(url, batch, { 'mcp-session-id': session })).status).toBe(200);
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
