import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { FetchLike } from '@modelcontextprotocol/sdk/shared/transport.js';
import { Agent, fetch as undiciFetch } from 'undici';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { ServeConfig } from '../../../supervisor/config/config.ts';
import { startHttpServer } from '../../../supervisor/surface/http-server.ts';
import { type RunningManagement, startManagement } from '../../../supervisor/surface/management.ts';
import { managementServer } from '../../../supervisor/surface/management-server.ts';
import { mcpEndpoint } from '../../../supervisor/surface/mcp-endpoint.ts';
import { type FakeManagementPort, fakeManagementPort } from '../../helpers/fake-management-port.ts';
import { nullLog } from '../../helpers/null-log.ts';
import { connectSdkClient } from '../../helpers/sdk-client.ts';

const fixture = (name: string): string => join(import.meta.dirname, '../../fixtures/surface', `${name}.pem`);
const LOOPBACK: ServeConfig = {
  url: 'http://127.0.0.1:0',
  certFile: null,
  keyFile: null,
  clientCaFile: null,
  bearer: null,
};

describe('who may use the management surface', () => {
  let port: FakeManagementPort;
  let management: RunningManagement | undefined;
  const closing: (() => Promise<unknown>)[] = [];

  beforeEach(() => {
    port = fakeManagementPort();
  });
  afterEach(async () => {
    for (const close of closing.splice(0)) await close();
    await management?.close(1000);
    management = undefined;
  });

  async function start(serve: Partial<ServeConfig> = {}, env: NodeJS.ProcessEnv = {}): Promise<string> {
    management = await startManagement({ serve: { ...LOOPBACK, ...serve }, port, log: nullLog, env });
    return management.url;
  }

  it('has nothing for a caller that is not Management (-32601)', async () => {
    const endpoint = mcpEndpoint({
      build: (session) => managementServer(port, session, nullLog),
      access: 'anyone',
      log: nullLog,
    });
    const http = await startHttpServer({
      url: 'http://127.0.0.1:0',
      routes: endpoint.routes,
      bearer: () => 'secret',
      log: nullLog,
    });
    const { client, close } = await connectSdkClient(`${http.url}/mcp`);
    closing.push(
      close,
      () => endpoint.close(100),
      () => http.close(100),
    );
    for (const method of ['a2a.Drain', 'a2a.Pause', 'tools/list', 'resources/list']) {
      await expect(client.request({ method, params: {} }, z.looseObject({}))).rejects.toMatchObject({
        code: -32601,
      });
    }
    expect(port.commands).toEqual([]);
  });

  it('takes a bearer token over TLS and refuses a wrong one with 401', async () => {
    const url = await start(
      {
        url: 'https://localhost:0',
        certFile: fixture('server.cert'),
        keyFile: fixture('server.key'),
        bearer: { secret: 'env', name: 'TOKEN' },
      },
      { TOKEN: 'right' },
    );
    const trusting = tlsFetch({});
    expect(await statusOver(url, trusting, { authorization: 'Bearer right' })).toMatchObject({ ready: true });
    await expect(statusOver(url, trusting, { authorization: 'Bearer wrong' })).rejects.toMatchObject({
      code: 401,
    });
    await expect(statusOver(url, trusting)).rejects.toMatchObject({ code: 401 });
  });

  it('takes a client certificate of its authority and no other', async () => {
    const url = await start({
      url: 'https://localhost:0',
      certFile: fixture('server.cert'),
      keyFile: fixture('server.key'),
      clientCaFile: fixture('authority.cert'),
    });
    const as = (name: string): FetchLike =>
      tlsFetch({ cert: readFileSync(fixture(`${name}.cert`)), key: readFileSync(fixture(`${name}.key`)) });
    expect(await statusOver(url, as('client'))).toMatchObject({ ready: true });
    await expect(statusOver(url, as('impostor'))).rejects.toThrow();
    await expect(statusOver(url, tlsFetch({}))).rejects.toThrow();
  });

  it('does not start without its token, off loopback without TLS, or on a taken port', async () => {
    await expect(start({ bearer: { secret: 'env', name: 'TOKEN' } })).rejects.toMatchObject({ exitCode: 2 });
    await expect(start({ url: 'http://192.0.2.1:0' })).rejects.toMatchObject({ code: 'LISTEN_REFUSED' });
    const url = await start();
    const taken = startManagement({ serve: { ...LOOPBACK, url: new URL(url).origin }, port, log: nullLog });
    await expect(taken).rejects.toMatchObject({ code: 'ADDRESS_IN_USE', exitCode: 2 });
  });

  /** A fetch that trusts the test authority, on connections of its own. */
  function tlsFetch(connectWith: { readonly cert?: Buffer; readonly key?: Buffer }): FetchLike {
    const dispatcher = new Agent({
      connect: { ca: readFileSync(fixture('authority.cert')), ...connectWith },
    });
    closing.push(() => dispatcher.destroy());
    return (url, init) =>
      undiciFetch(url, { ...(init as object), dispatcher }) as unknown as Promise<Response>;
  }

  async function statusOver(
    url: string,
    fetch: FetchLike,
    headers: Record<string, string> = {},
  ): Promise<unknown> {
    const client = new Client({ name: 'test', version: '1' });
    const transport = new StreamableHTTPClientTransport(new URL(url), { fetch, requestInit: { headers } });
    closing.push(() => client.close());
    await client.connect(transport);
    return (await client.callTool({ name: 'status' })).structuredContent;
  }
});
