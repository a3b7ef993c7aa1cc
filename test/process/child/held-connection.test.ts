import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, test } from 'vitest';
import type { ModelTarget } from '../../../protocol/frames.ts';
import { type ModelServer, type ServerStep, startModelServer } from '../../fixtures/model-server.ts';
import { DrivenChild, runStart } from '../../helpers/child-driver.ts';
import { eventually } from '../../helpers/eventually.ts';

const children: DrivenChild[] = [];
const servers: ModelServer[] = [];
const file = (name: string): string =>
  fileURLToPath(new URL(`../../fixtures/surface/${name}`, import.meta.url));

const FINE: ServerStep = { kind: 'answer', text: 'fine' };

async function serve(tls = false, first = FINE): Promise<ModelServer> {
  const server = await startModelServer(
    [first, FINE],
    tls
      ? { cert: readFileSync(file('server.cert.pem')), key: readFileSync(file('server.key.pem')) }
      : undefined,
  );
  servers.push(server);
  return server;
}

async function holding(target: ModelTarget): Promise<DrivenChild> {
  const child = new DrivenChild();
  children.push(child);
  await child.ready();
  child.send({ method: 'model.hold', params: target });
  return child;
}

async function runOn(child: DrivenChild, url: string, tlsCa?: string): Promise<unknown> {
  const model = {
    endpoints: [{ url: `${url}/v1` }],
    timeout_ms: 30_000,
    max_attempts: 1,
    ...(tlsCa === undefined ? {} : { tls_ca: tlsCa }),
  };
  child.send(runStart('unused', { model }));
  return child.result();
}

afterEach(async () => {
  for (const child of children.splice(0)) await child.stop();
  for (const server of servers.splice(0)) await server.close();
});

describe('a child that waits for its run with the model at hand', () => {
  test.each([
    ['http', false],
    ['https', true],
  ])(
    'holds a connection open (%s), sends nothing on it, and makes its first request there',
    async (_scheme, tls) => {
      const server = await serve(tls);
      const ca = tls ? { tls_ca: file('authority.cert.pem') } : {};
      const child = await holding({ origin: server.origin, ...ca });
      await child.notification('model.held', ({ open }) => open);
      expect(server.requests).toHaveLength(0);
      expect(await runOn(child, server.origin, ca.tls_ca)).toMatchObject({
        status: 'completed',
        result: 'fine',
      });
      expect(server.requests.map(({ connection }) => connection)).toEqual([1]);
      expect(server.connections()).toBe(1);
    },
  );

  test('asks again on a new connection when the held one broke: that is no failure of the endpoint', async () => {
    const server = await serve(false, { kind: 'reset' });
    const child = await holding({ origin: server.origin });
    await child.notification('model.held', ({ open }) => open);
    expect(await runOn(child, server.origin)).toMatchObject({ status: 'completed', result: 'fine' });
    expect(server.requests.map(({ connection }) => connection)).toEqual([1, 2]);
    const failed = child.frames.filter(
      ({ type, body }) =>
        type === 'notification' && body.method === 'run.progress' && body.params.call?.ok === false,
    );
    expect(failed).toEqual([]);
  });

  test('told to hold none, closes the one it held and makes no other', async () => {
    const server = await serve();
    const child = await holding({ origin: server.origin });
    await child.notification('model.held', ({ open }) => open);
    child.send({ method: 'model.release', params: {} });
    await child.ping();
    expect(await runOn(child, server.origin)).toMatchObject({ status: 'completed' });
    expect(server.requests.map(({ connection }) => connection)).toEqual([2]);
  });

  test('says when it has lost the connection, and makes it again', async () => {
    const server = await serve();
    const child = await holding({ origin: server.origin });
    await child.notification('model.held', ({ open }) => open);
    server.drop();
    await child.notification('model.held', ({ open }) => !open);
    await child.until('a second connection', () => {
      const opened = child.frames.filter(
        ({ type, body }) =>
          type === 'notification' &&
          body.method === 'model.held' &&
          'open' in body.params &&
          body.params.open,
      );
      return opened.length === 2 ? true : undefined;
    });
    expect(await runOn(child, server.origin)).toMatchObject({ status: 'completed' });
    expect(server.requests.map(({ connection }) => connection)).toEqual([2]);
  });

  test('told of another endpoint, holds that one and not the first', async () => {
    const [first, second] = [await serve(), await serve()];
    const child = await holding({ origin: first.origin });
    await child.notification('model.held', ({ open }) => open);
    child.send({ method: 'model.hold', params: { origin: second.origin } });
    await eventually('a connection to the second', () => second.connections() === 1);
    expect(await runOn(child, second.origin)).toMatchObject({ status: 'completed' });
    expect(second.requests.map(({ connection }) => connection)).toEqual([1]);
    expect(first.requests).toHaveLength(0);
  });

  test('works with an endpoint it did not hold, whatever became of the one it did', async () => {
    const [held, used] = [await serve(), await serve()];
    const child = await holding({ origin: held.origin });
    await child.notification('model.held', ({ open }) => open);
    expect(await runOn(child, used.origin)).toMatchObject({ status: 'completed' });
    expect(held.requests).toHaveLength(0);
    const gone = await serve();
    await gone.close();
    const other = await holding({ origin: gone.origin });
    await other.ping();
    expect(await runOn(other, used.origin)).toMatchObject({ status: 'completed' });
  });

  test('an authority file that cannot be read is no fault before there is a run', async () => {
    const server = await serve();
    const child = await holding({ origin: server.origin, tls_ca: '/no/such/authorities.pem' });
    expect(await runOn(child, server.origin)).toMatchObject({ status: 'completed' });
  });
});
