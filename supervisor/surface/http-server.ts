import {
  createServer as createHttpServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from 'node:http';
import { createServer as createHttpsServer, type Server as HttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { TLSSocket } from 'node:tls';
import { AgentdError, errorMessage } from '../../protocol/errors.ts';
import type { Log } from '../telemetry/log.ts';
import { bearerAccepted } from './bearer.ts';
import { Connections } from './connections.ts';
import { readBody } from './http-body.ts';
import { RPC, sendRpcError } from './http-reply.ts';
import { formatListenUrl, type ListenAddress, parseListenUrl } from './listen-url.ts';
import { type OriginRules, originRefusal } from './origin-guard.ts';
import { type TlsFiles, TlsKeeper } from './tls.ts';

export interface HttpRequest {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  readonly raw: IncomingMessage;
  /** A verified client certificate, an accepted bearer token, or loopback without either configured. */
  readonly management: boolean;
}

export interface HttpRoute {
  readonly method: 'GET' | 'POST' | 'DELETE' | '*';
  readonly path: string;
  /** Who may call it. Default `management`; `anyone` is told apart by `HttpRequest.management`. */
  readonly access?: 'management' | 'anyone';
  handle(req: HttpRequest, res: ServerResponse, body: Buffer): void | Promise<void>;
}

export interface HttpServerOptions {
  /** `http://` on loopback only; `https://` needs `tls` and a client authority or `bearer`. */
  readonly url: string;
  readonly routes: readonly HttpRoute[];
  readonly tls?: TlsFiles;
  /** The expected token, read for every request so that it can rotate. */
  readonly bearer?: () => string;
  /** Names beside loopback and those in the certificate that clients may use for this host. */
  readonly hosts?: readonly string[];
  readonly maxBodyBytes?: number;
  /** Beyond it the longest idle connection is ended. */
  readonly maxConnections?: number;
  /** Longest a client may take to send its headers, ms. */
  readonly headersTimeoutMs?: number;
  /** Longest a client may take to send a whole request, ms. */
  readonly requestTimeoutMs?: number;
  readonly log: Log;
}

export interface RunningHttpServer {
  /** scheme://host:port with the real port, no path. */
  readonly url: string;
  readonly port: number;
  /**
   * Stops listening and ends idle and event-stream connections at once; requests in flight may
   * finish within `budgetMs`, then their connections are cut.
   */
  close(budgetMs: number): Promise<void>;
}

const MAX_BODY_BYTES = 4 * 1024 * 1024;
const MAX_CONNECTIONS = 2048;
const MAX_HEADER_BYTES = 16 * 1024;
const MAX_HEADERS = 100;
const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 30_000;
const KEEP_ALIVE_MS = 30_000;

/**
 * Opens a listener and serves routes on it (contract, section 10).
 *
 * @throws AgentdError ADDRESS_IN_USE, LISTEN_REFUSED or TLS_UNUSABLE, all exit 2
 */
export async function startHttpServer(options: HttpServerOptions): Promise<RunningHttpServer> {
  const address = parseListenUrl(options.url);
  const keeper = address.secure ? openTls(options) : null;
  const rules: OriginRules = {
    hosts: new Set([address.host, ...(options.hosts ?? [])].map((host) => host.toLowerCase())),
    certified: keeper === null ? null : (host) => keeper.material.names(host),
  };
  const server = createServer(options, keeper);
  server.maxHeadersCount = MAX_HEADERS;
  const connections = new Connections(server, options.maxConnections ?? MAX_CONNECTIONS);
  server.on('request', (raw, res) => void serve(raw, res, options, rules));
  await listen(server, address);
  const { port } = server.address() as AddressInfo;
  return {
    url: formatListenUrl(address, port),
    port,
    close: (budgetMs) => connections.close(budgetMs),
  };
}

function openTls(options: HttpServerOptions): TlsKeeper {
  const { tls, bearer, log } = options;
  if (tls === undefined || (tls.clientCaFile === undefined && bearer === undefined)) {
    const missing = tls === undefined ? 'a certificate and key' : 'a client authority or a bearer token';
    throw new AgentdError('LISTEN_REFUSED', `cannot listen on ${options.url}: https:// needs ${missing}`);
  }
  return new TlsKeeper(tls, (reason) =>
    log.warn('config.warn', { msg: `the changed certificate is not in use: ${reason}` }),
  );
}

function createServer(options: HttpServerOptions, keeper: TlsKeeper | null): Server | HttpsServer {
  const headersTimeout = options.headersTimeoutMs ?? HEADERS_TIMEOUT_MS;
  const requestTimeout = Math.max(headersTimeout, options.requestTimeoutMs ?? REQUEST_TIMEOUT_MS);
  const common: ServerOptions = {
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout,
    requestTimeout,
    keepAliveTimeout: KEEP_ALIVE_MS,
    // How late a slow client may be noticed; the check is cheap and its timer holds nothing open.
    connectionsCheckingInterval: Math.min(1000, headersTimeout),
  };
  if (keeper === null) return createHttpServer(common);
  const mutual = options.tls?.clientCaFile !== undefined;
  const server = createHttpsServer({
    ...common,
    ...keeper.material.options,
    handshakeTimeout: headersTimeout,
    requestCert: mutual,
    // With a bearer as the other way in, the request decides; otherwise the handshake refuses.
    rejectUnauthorized: mutual && options.bearer === undefined,
  });
  // Before the server's own listener, so that this very connection already sees the new material.
  server.prependListener('connection', () => {
    if (keeper.refresh()) server.setSecureContext(keeper.material.options);
  });
  return server;
}

function listen(server: Server | HttpsServer, address: ListenAddress): Promise<void> {
  return new Promise((resolve, reject) => {
    const failed = (error: NodeJS.ErrnoException): void => {
      const where = formatListenUrl(address, address.port);
      reject(
        error.code === 'EADDRINUSE'
          ? new AgentdError('ADDRESS_IN_USE', `cannot listen on ${where}: the port is in use`, {
              cause: error,
            })
          : new AgentdError('LISTEN_REFUSED', `cannot listen on ${where}: ${error.message}`, {
              cause: error,
              remedy: 'Choose an address of this machine and a port this user may open.',
            }),
      );
    };
    server.once('error', failed);
    server.listen({ host: address.host, port: address.port, backlog: 511 }, () => {
      server.removeListener('error', failed);
      resolve();
    });
  });
}

async function serve(
  raw: IncomingMessage,
  res: ServerResponse,
  options: HttpServerOptions,
  rules: OriginRules,
): Promise<void> {
  try {
    const refusal = originRefusal(raw.headers.host, raw.headers.origin, rules);
    if (refusal !== null) {
      refuse(res, 403, `the ${refusal === 'host' ? 'Host' : 'Origin'} header does not name this server`);
      return;
    }
    const [path, query] = splitTarget(raw.url ?? '/');
    const onPath = options.routes.filter((route) => route.path === path);
    const management = isManagement(raw, options);
    if (!management && !onPath.some((route) => route.access === 'anyone')) {
      refuse(res, 401, 'a client certificate or bearer token is required', { 'www-authenticate': 'Bearer' });
      return;
    }
    const route = onPath.find((candidate) => candidate.method === raw.method || candidate.method === '*');
    if (route === undefined) {
      if (onPath.length === 0) refuse(res, 404, `nothing is served at ${path}`);
      else refuse(res, 405, 'method not allowed', { allow: onPath.map((each) => each.method).join(', ') });
      return;
    }
    const outcome = await readBody(raw, options.maxBodyBytes ?? MAX_BODY_BYTES);
    if (outcome.kind === 'aborted') return;
    if (outcome.kind === 'too_large') {
      refuse(res, 413, `the body exceeds ${options.maxBodyBytes ?? MAX_BODY_BYTES} bytes`);
      return;
    }
    const request: HttpRequest = {
      method: raw.method ?? 'GET',
      path,
      query: new URLSearchParams(query),
      headers: raw.headers,
      raw,
      management,
    };
    await route.handle(request, res, outcome.body);
  } catch (error) {
    options.log.error('mcp.connect.fail', {
      msg: 'a request could not be answered',
      err: { type: error instanceof Error ? error.name : 'Error', message: errorMessage(error) },
    });
    if (res.headersSent) res.destroy();
    else refuse(res, 500, 'internal error');
  }
}

function isManagement(raw: IncomingMessage, options: HttpServerOptions): boolean {
  if (options.tls?.clientCaFile !== undefined && hasVerifiedCertificate(raw)) return true;
  if (options.bearer === undefined) return !(raw.socket instanceof TLSSocket);
  try {
    return bearerAccepted(raw.headers.authorization, options.bearer());
  } catch (error) {
    // A token file that is gone for a moment lets nobody in, and is no reason to fail otherwise.
    options.log.error('config.warn', { msg: `the bearer token cannot be read: ${errorMessage(error)}` });
    return false;
  }
}

/**
 * Whether the connection carries a client certificate of an accepted authority. `authorized` alone
 * does not say so: it is also true for a resumed TLS 1.3 session that never had a certificate.
 */
function hasVerifiedCertificate({ socket }: IncomingMessage): boolean {
  return socket instanceof TLSSocket && socket.authorized && socket.getPeerX509Certificate() !== undefined;
}

/** Refuses and closes the connection when a body may still be on its way, so none of it is read. */
function refuse(
  res: ServerResponse,
  status: number,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  const unread = !res.req.complete;
  const code = status >= 500 ? RPC.INTERNAL : RPC.TRANSPORT;
  sendRpcError(res, status, code, message, unread ? { ...headers, connection: 'close' } : headers);
}

function splitTarget(target: string): readonly [path: string, query: string] {
  const mark = target.indexOf('?');
  return mark === -1 ? [target, ''] : [target.slice(0, mark), target.slice(mark + 1)];
}
