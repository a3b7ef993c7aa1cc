import { errorMessage } from '../../protocol/errors.ts';
import { WORK_PENDING_URI } from '../../protocol/work-tools.ts';
import { startHttpServer } from '../surface/http-server.ts';
import { MCP_PATH, mcpEndpoint } from '../surface/mcp-endpoint.ts';
import { ResourceHub } from '../surface/resource-hub.ts';
import type { TlsFiles } from '../surface/tls.ts';
import type { Log } from '../telemetry/log.ts';
import {
  coordinatorHealth,
  type HealthListener,
  healthOnListener,
  listenForHealth,
  withinBound,
} from './coordinator-health.ts';
import { createCoordinatorMetrics } from './coordinator-metrics.ts';
import { Housekeeper } from './housekeeper.ts';
import type { Ledger } from './ledger.ts';
import { workServer } from './work-server.ts';

export interface CoordinatorOptions {
  readonly ledger: Ledger;
  /** See HttpServerOptions.url. */
  readonly listen: string;
  readonly bearer?: () => string;
  readonly tls?: TlsFiles;
  /** HOST:PORT of a plain listener for /metrics, /healthz and /readyz alone. */
  readonly metricsAddr?: string;
  readonly log: Log;
}

export interface Coordinator {
  /** The MCP endpoint, with the real port. */
  readonly url: string;
  /** Of the plain listener, without a path; null without one. */
  readonly metricsUrl: string | null;
  /** Stops listening, answers what is in flight within `budgetMs`, then closes the ledger. */
  close(budgetMs: number): Promise<void>;
}

/** Every supervisor of a fleet holds a session or two. */
const MAX_SESSIONS = 4096;
const MAX_BODY_BYTES = 2 * 1024 * 1024;
/** Shortest time between two notifications of work://pending, ms. */
const NOTIFY_INTERVAL_MS = 50;

/**
 * Serves a ledger over MCP, with metrics and probes. Owns the ledger from here on.
 *
 * @throws AgentdError ADDRESS_IN_USE, LISTEN_REFUSED, TLS_UNUSABLE or CONFIG_INVALID; the ledger is
 *   closed then
 */
export async function startCoordinator(options: CoordinatorOptions): Promise<Coordinator> {
  const { ledger, log } = options;
  const hub = new ResourceHub();
  let draining = false;
  const metrics = await createCoordinatorMetrics(async () => ({
    draining,
    sessions: endpoint.sessionCount,
    ledger: await withinBound(ledger.stats()),
  }));
  const endpoint = mcpEndpoint({
    build: (session) => workServer({ ledger, log, onCall: metrics.called }, session),
    hub,
    maxSessions: MAX_SESSIONS,
    // Leases belong to instances, not to sessions: any server of the database can go on with one.
    adopt: true,
    log,
  });
  const notices = throttle(NOTIFY_INTERVAL_MS, () => hub.notifyUpdated(WORK_PENDING_URI));
  const silence = ledger.onPending(notices.ask);
  const housekeeper = new Housekeeper(ledger, log, metrics.expired);
  const health = coordinatorHealth(ledger, metrics, () => draining);
  let listener: HealthListener | null = null;
  try {
    if (options.metricsAddr !== undefined) listener = await listenForHealth(options.metricsAddr, health);
    const server = await startHttpServer({
      url: options.listen,
      routes: [...endpoint.routes, ...healthOnListener(health)],
      maxBodyBytes: MAX_BODY_BYTES,
      maxConnections: MAX_SESSIONS * 2,
      ...(options.bearer === undefined ? {} : { bearer: options.bearer }),
      ...(options.tls === undefined ? {} : { tls: options.tls }),
      log,
    });
    housekeeper.start();
    const probes = listener;
    return {
      url: server.url + MCP_PATH,
      metricsUrl: probes?.url ?? null,
      close: async (budgetMs) => {
        draining = true;
        silence();
        notices.stop();
        await Promise.all([housekeeper.stop(), endpoint.close(budgetMs), server.close(budgetMs)]);
        await probes?.close(0);
        await ledger.close();
      },
    };
  } catch (error) {
    silence();
    await listener?.close(0);
    await endpoint.close(0);
    await ledger.close().catch((failure: unknown) => {
      log.warn('proc.shutdown', { msg: `the ledger did not close: ${errorMessage(failure)}` });
    });
    throw error;
  }
}

/** Calls `act` at once when asked, and at most once per interval however often it is asked. */
function throttle(intervalMs: number, act: () => void): { ask: () => void; stop: () => void } {
  let timer: NodeJS.Timeout | null = null;
  let asked = false;
  const elapsed = (): void => {
    timer = null;
    if (!asked) return;
    asked = false;
    go();
  };
  const go = (): void => {
    act();
    timer = setTimeout(elapsed, intervalMs);
  };
  return {
    ask: () => {
      if (timer === null) go();
      else asked = true;
    },
    stop: () => {
      if (timer !== null) clearTimeout(timer);
      timer = null;
      asked = false;
    },
  };
}
