import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { originRefusal } from './origin-guard.ts';

/** What an endpoint answers. */
export interface HealthAnswer {
  readonly status: number;
  readonly type: string;
  readonly body: string;
}

export interface HealthRoutes {
  /** By path. Must settle within a bound of their own. */
  readonly [path: string]: () => HealthAnswer | Promise<HealthAnswer>;
}

/** Open connections; the one that was opened first makes room for the next. */
const MAX_CONNECTIONS = 128;
const MAX_HEADER_BYTES = 8 * 1024;
/** Longest a client may take to send a request, or to take an answer without reading on, ms. */
const CLIENT_TIMEOUT_MS = 5_000;
const KEEP_ALIVE_MS = 5_000;

/**
 * The HTTP side of the health thread. It never refuses a fresh connection: a probe must get through
 * however many idle or slow ones somebody holds open.
 */
export class HealthServer {
  private readonly server: Server;
  private readonly sockets = new Set<Socket>();

  /** @param loopback only Host names that mean this machine are served */
  constructor(
    private readonly routes: HealthRoutes,
    private readonly loopback: boolean,
  ) {
    this.server = createServer(
      {
        maxHeaderSize: MAX_HEADER_BYTES,
        headersTimeout: CLIENT_TIMEOUT_MS,
        requestTimeout: CLIENT_TIMEOUT_MS,
        keepAliveTimeout: KEEP_ALIVE_MS,
        connectionsCheckingInterval: 1_000,
      },
      (request, response) => void this.serve(request, response),
    );
    this.server.timeout = CLIENT_TIMEOUT_MS;
    this.server.on('connection', (socket) => this.admit(socket));
  }

  /** Resolves to the port; rejects with the error of listen(2). */
  listen(host: string, port: number): Promise<number> {
    return new Promise((resolve, reject) => {
      this.server.once('error', reject);
      this.server.listen({ host, port }, () => {
        this.server.off('error', reject);
        this.server.on('error', () => {});
        const address = this.server.address();
        resolve(typeof address === 'object' && address !== null ? address.port : port);
      });
    });
  }

  /** Idle clients are cut at once, answers under way after `budgetMs`. */
  close(budgetMs: number): Promise<void> {
    return new Promise((resolve) => {
      const cut = setTimeout(() => {
        for (const socket of this.sockets) socket.destroy();
      }, budgetMs);
      this.server.close(() => {
        clearTimeout(cut);
        resolve();
      });
      this.server.closeIdleConnections();
    });
  }

  private admit(socket: Socket): void {
    if (this.sockets.size >= MAX_CONNECTIONS) {
      const [oldest] = this.sockets;
      oldest?.destroy();
    }
    this.sockets.add(socket);
    socket.on('error', () => {});
    socket.once('close', () => this.sockets.delete(socket));
  }

  private async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const answer = await this.answer(request);
    if (response.destroyed) return;
    const last = request.method !== 'GET' && request.method !== 'HEAD';
    response.writeHead(answer.status, {
      'content-type': answer.type,
      'content-length': Buffer.byteLength(answer.body),
      'cache-control': 'no-store',
      ...(last || !this.server.listening ? { connection: 'close' } : {}),
      ...(answer.status === 405 ? { allow: 'GET, HEAD' } : {}),
    });
    response.end(request.method === 'HEAD' ? undefined : answer.body);
  }

  private async answer(request: IncomingMessage): Promise<HealthAnswer> {
    // Probes of HTTP/1.0 name no host; a page that rebinds a name always does.
    const { host = 'localhost', origin } = request.headers;
    const rules = { hosts: new Set<string>(), certified: this.loopback ? null : () => true };
    if (originRefusal(host, origin, rules) !== null) return plain(403, 'refused: Host or Origin');
    if (request.method !== 'GET' && request.method !== 'HEAD') return plain(405, 'only GET and HEAD');
    const path = (request.url ?? '/').split('?', 1)[0] ?? '/';
    const route = Object.hasOwn(this.routes, path) ? this.routes[path] : undefined;
    if (route === undefined)
      return plain(404, `not found; served here: ${Object.keys(this.routes).join(' ')}`);
    try {
      return await route();
    } catch {
      return plain(500, 'internal error');
    }
  }
}

export function plain(status: number, text: string): HealthAnswer {
  return { status, type: 'text/plain; charset=utf-8', body: `${text}\n` };
}

export function json(status: number, value: object): HealthAnswer {
  return { status, type: 'application/json', body: `${JSON.stringify(value)}\n` };
}
