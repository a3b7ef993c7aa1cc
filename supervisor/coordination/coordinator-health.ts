import { AgentdError, errorMessage } from '../../protocol/errors.ts';
import { parseHostPort } from '../surface/health.ts';
import { type HealthAnswer, type HealthRoutes, HealthServer, json } from '../surface/health-server.ts';
import type { HttpRoute } from '../surface/http-server.ts';
import { formatListenUrl, isLoopback } from '../surface/listen-url.ts';
import type { CoordinatorMetrics } from './coordinator-metrics.ts';
import type { Ledger } from './ledger.ts';

/** Longest a probe or scrape waits for the database, ms. */
const DATABASE_MS = 2_000;

/** What `promise` resolves to, or null when that takes too long or fails. */
export async function withinBound<T>(promise: Promise<T>, ms = DATABASE_MS): Promise<T | null> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(() => resolve(null), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } catch {
    return null;
  } finally {
    clearTimeout(timer);
  }
}

/**
 * The probes of a coordination server. It is alive as long as it answers; it is ready while its
 * database does and no drain has begun.
 */
export function coordinatorHealth(
  ledger: Ledger,
  metrics: CoordinatorMetrics,
  isDraining: () => boolean,
): HealthRoutes {
  return {
    '/healthz': () => json(200, { status: 'ok' }),
    '/readyz': async () => {
      if (isDraining()) return json(503, { ready: false, reason: 'draining' });
      const alive = await withinBound(ledger.ping().then(() => true));
      return alive === true
        ? json(200, { ready: true })
        : json(503, { ready: false, reason: 'ledger_unavailable' });
    },
    '/metrics': async () => ({
      status: 200,
      type: 'text/plain; version=0.0.4; charset=utf-8',
      body: await metrics.render(),
    }),
  };
}

/** The same on the listener of the MCP endpoint. Probes carry no token, so they may come from anyone. */
export function healthOnListener(routes: HealthRoutes): HttpRoute[] {
  return Object.entries(routes).map(([path, answer]) => ({
    method: 'GET',
    path,
    access: path === '/metrics' ? 'management' : 'anyone',
    handle: async (_request, res) => {
      const { status, type, body }: HealthAnswer = await answer();
      res.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' });
      res.end(body);
    },
  }));
}

/** A plain listener for probes and scrapes alone. */
export interface HealthListener {
  readonly url: string;
  close(budgetMs: number): Promise<void>;
}

/** @throws AgentdError ADDRESS_IN_USE, LISTEN_REFUSED or CONFIG_INVALID, all exit 2 */
export async function listenForHealth(address: string, routes: HealthRoutes): Promise<HealthListener> {
  const { host, port } = parseHostPort(address);
  const server = new HealthServer(routes, isLoopback(host));
  try {
    const actual = await server.listen(host, port);
    return {
      url: formatListenUrl({ secure: false, host, port }, actual),
      close: (budgetMs) => server.close(budgetMs),
    };
  } catch (error) {
    const inUse = error instanceof Error && 'code' in error && error.code === 'EADDRINUSE';
    throw new AgentdError(
      inUse ? 'ADDRESS_IN_USE' : 'LISTEN_REFUSED',
      `cannot serve metrics on ${address}: ${inUse ? 'the port is in use' : errorMessage(error)}`,
      { cause: error },
    );
  }
}
