import { once } from 'node:events';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TLSSocket, connect as tlsConnect } from 'node:tls';
import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  type HttpRoute,
  type RunningHttpServer,
  startHttpServer,
} from '../../../supervisor/surface/http-server.ts';
import type { TlsFiles } from '../../../supervisor/surface/tls.ts';
import { eventually } from '../../helpers/eventually.ts';
import { recordingLog } from '../../helpers/null-log.ts';

const fixture = (name: string): string => join(import.meta.dirname, '../../fixtures/surface', `${name}.pem`);
const authority = readFileSync(fixture('authority.cert'));

let folder: string;
let server: RunningHttpServer | undefined;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'agentd-tls-'));
});
afterEach(async () => {
  await server?.close(0);
  server = undefined;
  rmSync(folder, { recursive: true });
});

const who: HttpRoute = {
  method: 'GET',
  path: '/who',
  handle: (req, res) => {
    res.end(String(req.management));
  },
};

interface Answer {
  readonly status: number;
  readonly body: string;
  readonly servedBy: string;
}

/** One call on a connection of its own. */
function call(
  url: string,
  options: { readonly as?: string; readonly headers?: Record<string, string> } = {},
): Promise<Answer> {
  const { as, headers } = options;
  return new Promise((resolve, reject) => {
    const req = request(
      `${url}/who`,
      {
        ca: authority,
        agent: false,
        // Not the Host header, whose refusal by the server is what a test wants to see.
        servername: 'localhost',
        ...(as ? { cert: readFileSync(fixture(`${as}.cert`)), key: readFileSync(fixture(`${as}.key`)) } : {}),
        ...(headers ? { headers } : {}),
      },
      (res) => {
        let body = '';
        const socket = res.socket as TLSSocket;
        const servedBy = String(socket.getPeerCertificate().subject.CN);
        res.on('data', (chunk: Buffer) => {
          body += chunk.toString();
        });
        res.on('end', () => resolve({ status: res.statusCode ?? 0, body, servedBy }));
      },
    );
    req.on('error', reject);
    req.end();
  });
}

function files(name: string, mutual: boolean): TlsFiles {
  copyFileSync(fixture(`${name}.cert`), join(folder, 'cert.pem'));
  copyFileSync(fixture(`${name}.key`), join(folder, 'key.pem'));
  return {
    certFile: join(folder, 'cert.pem'),
    keyFile: join(folder, 'key.pem'),
    ...(mutual ? { clientCaFile: fixture('authority.cert') } : {}),
  };
}

test('mutual TLS accepts a certificate of the authority and no other', async () => {
  const { log } = recordingLog();
  server = await startHttpServer({
    url: 'https://localhost:0',
    routes: [who],
    tls: files('server', true),
    log,
  });
  expect(await call(server.url, { as: 'client' })).toMatchObject({ status: 200, body: 'true' });
  await expect(call(server.url)).rejects.toThrow();
  await expect(call(server.url, { as: 'impostor' })).rejects.toThrow();
});

test('with a bearer token beside mutual TLS, either is enough and neither is 401', async () => {
  const { log } = recordingLog();
  const tls = files('server', true);
  server = await startHttpServer({ url: 'https://localhost:0', routes: [who], tls, bearer: () => 'x', log });
  expect((await call(server.url, { as: 'client' })).status).toBe(200);
  expect((await call(server.url, { headers: { authorization: 'Bearer x' } })).status).toBe(200);
  expect((await call(server.url, { as: 'impostor' })).status).toBe(401);
  expect((await call(server.url)).status).toBe(401);
});

test('a resumed session has the rights of the one it resumes, with a client certificate or without', async () => {
  const { log } = recordingLog();
  const tls = files('server', true);
  server = await startHttpServer({ url: 'https://localhost:0', routes: [who], tls, bearer: () => 'x', log });
  const { port } = server;
  /** One request on a connection of its own; what was answered, and the session to resume it by. */
  const exchange = async (
    as?: string,
    session?: Buffer,
  ): Promise<{ answer: string; session: Buffer; reused: boolean }> => {
    const socket = tlsConnect({
      port,
      host: 'localhost',
      ca: authority,
      ...(as ? { cert: readFileSync(fixture(`${as}.cert`)), key: readFileSync(fixture(`${as}.key`)) } : {}),
      ...(session === undefined ? {} : { session }),
    });
    let ticket = session ?? Buffer.alloc(0);
    socket.on('session', (issued: Buffer) => {
      ticket = issued;
    });
    let answer = '';
    socket.on('data', (chunk: Buffer) => {
      answer += chunk.toString();
    });
    await once(socket, 'secureConnect');
    const reused = socket.isSessionReused();
    socket.write('GET /who HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n');
    await once(socket, 'close');
    return { answer, session: ticket, reused };
  };
  for (const [as, status] of [
    [undefined, 401],
    ['impostor', 401],
    ['client', 200],
  ] as const) {
    const first = await exchange(as);
    expect([as, first.answer]).toEqual([as, expect.stringContaining(`HTTP/1.1 ${status}`)]);
    const second = await exchange(as, first.session);
    expect(second.reused).toBe(true);
    expect([as, second.answer]).toEqual([as, expect.stringContaining(`HTTP/1.1 ${status}`)]);
  }
});

test('a host name the certificate carries is accepted, another refused', async () => {
  const { log } = recordingLog();
  const tls = files('server', false);
  server = await startHttpServer({ url: 'https://localhost:0', routes: [who], tls, bearer: () => 'x', log });
  const as = (host: string): Promise<Answer> =>
    call(server?.url ?? '', { headers: { authorization: 'Bearer x', host } });
  expect((await as('agentd.example')).status).toBe(200);
  expect((await as('evil.example')).status).toBe(403);
});

test('a changed certificate is served to the next connection, a broken one never', async () => {
  const { log, lines } = recordingLog();
  const tls = files('server', false);
  server = await startHttpServer({ url: 'https://localhost:0', routes: [who], tls, bearer: () => 'x', log });
  const { url } = server;
  const servedBy = async (): Promise<string> =>
    (await call(url, { headers: { authorization: 'Bearer x' } })).servedBy;
  expect(await servedBy()).toBe('server');
  writeFileSync(tls.certFile, 'not a certificate');
  await eventually('the broken certificate to be noticed', async () => {
    expect(await servedBy()).toBe('server');
    return lines.some((line) => line.event === 'config.warn');
  });
  files('rotated', false);
  await eventually('the new certificate', async () => (await servedBy()) === 'rotated');
});

test('https without a way to tell callers apart, or with unusable files, does not start', async () => {
  const { log } = recordingLog();
  const start = (tls: TlsFiles | undefined): Promise<RunningHttpServer> =>
    startHttpServer({ url: 'https://localhost:0', routes: [who], log, ...(tls ? { tls } : {}) });
  await expect(start(undefined)).rejects.toMatchObject({ code: 'LISTEN_REFUSED', exitCode: 2 });
  await expect(start(files('server', false))).rejects.toMatchObject({ code: 'LISTEN_REFUSED' });
  await expect(start({ ...files('server', true), keyFile: '/nonexistent' })).rejects.toMatchObject({
    code: 'TLS_UNUSABLE',
    message: expect.stringContaining('/nonexistent'),
  });
  const mixed = { ...files('server', true), keyFile: fixture('client.key') };
  await expect(start(mixed)).rejects.toMatchObject({ code: 'TLS_UNUSABLE', exitCode: 2 });
});
