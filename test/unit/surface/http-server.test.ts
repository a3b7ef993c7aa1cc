import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import {
  type HttpRoute,
  type HttpServerOptions,
  type RunningHttpServer,
  startHttpServer,
} from '../../../supervisor/surface/http-server.ts';
import { eventually } from '../../helpers/eventually.ts';
import { nullLog } from '../../helpers/null-log.ts';

const open: RunningHttpServer[] = [];
const sockets: Socket[] = [];

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await Promise.all(open.splice(0).map((server) => server.close(0)));
});

const echo: HttpRoute = {
  method: 'POST',
  path: '/echo',
  handle: (_req, res, body) => {
    res.end(body);
  },
};

async function serve(options: Partial<HttpServerOptions> = {}): Promise<RunningHttpServer> {
  const server = await startHttpServer({
    url: 'http://127.0.0.1:0',
    routes: [echo],
    log: nullLog,
    ...options,
  });
  open.push(server);
  return server;
}

/** Everything a raw connection answers until it is closed by the server. */
async function rawExchange(port: number, bytes: string): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  sockets.push(socket);
  let text = '';
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1');
  });
  socket.on('error', () => undefined);
  socket.write(bytes);
  await once(socket, 'close');
  return text;
}

test('routes are found by path and method', async () => {
  const { url } = await serve();
  const hit = await fetch(`${url}/echo?x=1`, { method: 'POST', body: 'grüße' });
  expect([hit.status, await hit.text()]).toEqual([200, 'grüße']);
  expect((await fetch(`${url}/nowhere`)).status).toBe(404);
  const wrong = await fetch(`${url}/echo`);
  expect([wrong.status, wrong.headers.get('allow')]).toEqual([405, 'POST']);
});

test('a port that is taken is a clear configuration error', async () => {
  const { url } = await serve();
  await expect(serve({ url })).rejects.toMatchObject({
    code: 'ADDRESS_IN_USE',
    exitCode: 2,
    message: `cannot listen on ${url}: the port is in use`,
  });
});

test('an address this machine does not have is a configuration error', async () => {
  const bearer = (): string => 'x';
  await expect(serve({ url: 'https://192.0.2.1:0', bearer })).rejects.toMatchObject({
    code: 'LISTEN_REFUSED',
    exitCode: 2,
  });
});

test('a foreign Host or Origin is answered 403 before any route runs', async () => {
  const { port } = await serve();
  const head = `POST /echo HTTP/1.1\r\nconnection: close\r\ncontent-length: 0\r\n`;
  expect(await rawExchange(port, `${head}host: evil.example\r\n\r\n`)).toContain('HTTP/1.1 403');
  expect(await rawExchange(port, `${head}host: localhost\r\norigin: https://evil.example\r\n\r\n`)).toContain(
    'HTTP/1.1 403',
  );
  expect(await rawExchange(port, `${head}host: localhost\r\norigin: http://localhost\r\n\r\n`)).toContain(
    'HTTP/1.1 200',
  );
});

test('a bearer token is required when one is configured, and can rotate', async () => {
  let token = 'one';
  const { url } = await serve({ bearer: () => token });
  const call = (authorization?: string): Promise<Response> =>
    fetch(`${url}/echo`, { method: 'POST', ...(authorization ? { headers: { authorization } } : {}) });
  expect((await call()).status).toBe(401);
  expect((await call('Bearer two')).status).toBe(401);
  expect((await call('Bearer one')).status).toBe(200);
  token = 'two';
  expect((await call('Bearer one')).status).toBe(401);
  expect((await call('Bearer two')).status).toBe(200);
});

test('a route for anyone is told whether its caller may manage', async () => {
  const who: HttpRoute = {
    method: 'GET',
    path: '/who',
    access: 'anyone',
    handle: (req, res) => {
      res.end(String(req.management));
    },
  };
  const { url } = await serve({ routes: [who, echo], bearer: () => 'x' });
  expect(await (await fetch(`${url}/who`)).text()).toBe('false');
  expect(await (await fetch(`${url}/who`, { headers: { authorization: 'Bearer x' } })).text()).toBe('true');
  expect((await fetch(`${url}/echo`, { method: 'POST' })).status).toBe(401);
});

test('a body beyond the cap is answered 413, declared or streamed, without being read', async () => {
  const { url, port } = await serve({ maxBodyBytes: 1000 });
  expect((await fetch(`${url}/echo`, { method: 'POST', body: 'x'.repeat(1000) })).status).toBe(200);
  expect((await fetch(`${url}/echo`, { method: 'POST', body: 'x'.repeat(1001) })).status).toBe(413);
  const head = 'POST /echo HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n';
  expect(await rawExchange(port, `${head}800\r\n${'x'.repeat(0x800)}\r\n`)).toContain('HTTP/1.1 413');
});

test('headers beyond the cap are answered 431 and nonsense 400', async () => {
  const { port } = await serve();
  const long = `GET / HTTP/1.1\r\nhost: localhost\r\nx: ${'y'.repeat(20_000)}\r\n\r\n`;
  expect(await rawExchange(port, long)).toContain('HTTP/1.1 431');
  expect(await rawExchange(port, 'hello\r\n\r\n')).toContain('HTTP/1.1 400');
});

test('a client that sends its headers or body too slowly is answered 408', async () => {
  const { port } = await serve({ headersTimeoutMs: 200, requestTimeoutMs: 300 });
  const [head, body] = await Promise.all([
    rawExchange(port, 'POST /echo HTTP/1.1\r\nhost: localh'),
    rawExchange(port, 'POST /echo HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\nabc'),
  ]);
  expect(head).toContain('HTTP/1.1 408');
  expect(body).toContain('HTTP/1.1 408');
});

test('beyond the cap the longest idle connection gives way, so that a silent crowd locks nobody out', async () => {
  const { port, url } = await serve({ maxConnections: 20 });
  const crowd = Array.from({ length: 200 }, () => connect(port, '127.0.0.1'));
  sockets.push(...crowd);
  let closed = 0;
  for (const socket of crowd) {
    socket.on('error', () => undefined);
    socket.resume().on('close', () => {
      closed += 1;
    });
  }
  await eventually('the crowd to be thinned out', () => closed >= 180);
  const answer = await fetch(`${url}/echo`, { method: 'POST', body: 'still here' });
  expect(await answer.text()).toBe('still here');
});

test('with every connection busy the cap refuses the new one', async () => {
  let arrived: () => void = () => undefined;
  const arrival = new Promise<void>((resolve) => {
    arrived = resolve;
  });
  const { port } = await serve({
    maxConnections: 1,
    routes: [{ method: 'GET', path: '/hang', handle: () => arrived() }],
  });
  const held = connect(port, '127.0.0.1');
  sockets.push(held);
  held.write('GET /hang HTTP/1.1\r\nhost: localhost\r\n\r\n');
  await arrival;
  expect(await rawExchange(port, '')).toBe('');
  expect(held.destroyed).toBe(false);
});

test('a handler that throws is answered 500 without its reason', async () => {
  const broken: HttpRoute = {
    method: 'GET',
    path: '/broken',
    handle: () => {
      throw new Error('the secret is 42');
    },
  };
  const { url } = await serve({ routes: [broken] });
  const answer = await fetch(`${url}/broken`);
  expect(answer.status).toBe(500);
  expect(await answer.text()).not.toContain('42');
});

test('closing ends idle, silent and event-stream connections at once and lets a call finish', async () => {
  let finish: () => void = () => undefined;
  const started = new Promise<void>((resolve) => {
    finish = resolve;
  });
  let answer: () => void = () => undefined;
  const routes: HttpRoute[] = [
    {
      method: 'GET',
      path: '/slow',
      handle: (_req, res) => {
        answer = () => res.end('done');
        finish();
      },
    },
    {
      method: 'GET',
      path: '/stream',
      handle: (_req, res) => {
        res.setHeader('content-type', 'text/event-stream').flushHeaders();
      },
    },
  ];
  const server = await serve({ routes });
  const silent = connect(server.port, '127.0.0.1');
  sockets.push(silent);
  await once(silent, 'connect');
  // An idle keep-alive connection stays in the agent of fetch after its answer.
  await (await fetch(`${server.url}/none`)).text();
  const stream = await fetch(`${server.url}/stream`);
  const slow = fetch(`${server.url}/slow`);
  await started;
  const silentGone = once(silent.resume(), 'close');
  const closed = server.close(60_000);
  await silentGone;
  expect(await stream.text()).toBe('');
  answer();
  expect(await (await slow).text()).toBe('done');
  await closed;
});

test('closing never waits longer than its budget for a call that does not end', async () => {
  let arrived: () => void = () => undefined;
  const arrival = new Promise<void>((resolve) => {
    arrived = resolve;
  });
  const server = await serve({ routes: [{ method: 'GET', path: '/hang', handle: () => arrived() }] });
  const socket = connect(server.port, '127.0.0.1');
  sockets.push(socket);
  socket.on('error', () => undefined);
  socket.write('GET /hang HTTP/1.1\r\nhost: localhost\r\n\r\n');
  const gone = once(socket.resume(), 'close');
  await arrival;
  await server.close(100);
  await gone;
});
