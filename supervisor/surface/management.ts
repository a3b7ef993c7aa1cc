import type { ServeConfig } from '../config/config.ts';
import { readHeaderSecret } from '../config/secret.ts';
import type { Log } from '../telemetry/log.ts';
import { startHttpServer } from './http-server.ts';
import type { ManagementPort } from './management-port.ts';
import { managementServer } from './management-server.ts';
import { MCP_PATH, mcpEndpoint } from './mcp-endpoint.ts';
import { ResourceHub } from './resource-hub.ts';
import { StateNotifier } from './state-notifier.ts';

export interface ManagementOptions {
  readonly serve: ServeConfig;
  readonly port: ManagementPort;
  readonly log: Log;
  readonly env?: NodeJS.ProcessEnv;
}

export interface RunningManagement {
  /** Of the MCP endpoint, for the manifest and the log. */
  readonly url: string;
  /** A state resource changed: `agent://status`, `agent://subagent/0`. Cheap when nobody listens. */
  changed(uri: string): void;
  /** Ends every connection, waiting at most `budgetMs` for calls in flight. */
  close(budgetMs: number): Promise<void>;
}

/** Subscriptions of one session: state resources, sessions and subagents. */
const MAX_SUBSCRIPTIONS = 2000;
const MAX_SESSIONS = 512;

/**
 * Serves the management surface (contract, section 10).
 *
 * @throws AgentdError LISTEN_REFUSED, ADDRESS_IN_USE, TLS_UNUSABLE, SECRET_UNREADABLE, SECRET_UNUSABLE (all exit 2)
 */
export async function startManagement(options: ManagementOptions): Promise<RunningManagement> {
  const { serve, port, log } = options;
  const { bearer, certFile, keyFile, clientCaFile } = serve;
  // Read once now, so that a missing token is found at start; then for every request, so it can rotate.
  if (bearer !== null) readHeaderSecret(bearer, options.env);
  const hub = new ResourceHub(MAX_SUBSCRIPTIONS);
  const notifier = new StateNotifier(hub);
  const endpoint = mcpEndpoint({
    build: (session) => managementServer(port, session, log),
    hub,
    maxSessions: MAX_SESSIONS,
    log,
  });
  try {
    const http = await startHttpServer({
      url: serve.url,
      routes: endpoint.routes,
      log,
      ...(certFile === null || keyFile === null
        ? {}
        : { tls: { certFile, keyFile, ...(clientCaFile === null ? {} : { clientCaFile }) } }),
      ...(bearer === null ? {} : { bearer: () => readHeaderSecret(bearer, options.env) }),
    });
    return {
      url: http.url + MCP_PATH,
      changed: (uri) => notifier.changed(uri),
      close: async (budgetMs) => {
        const end = performance.now() + budgetMs;
        notifier.close();
        await endpoint.close(budgetMs);
        await http.close(end - performance.now());
      },
    };
  } catch (error) {
    await endpoint.close(0);
    throw error;
  }
}
