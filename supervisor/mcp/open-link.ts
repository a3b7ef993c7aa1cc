import { childEnvironment } from '../children/environment.ts';
import type { McpServerConfig } from '../config/config.ts';
import { readHeaderSecret, readSecret, type SecretRef } from '../config/secret.ts';
import type { Clock } from '../reactor/clock.ts';
import type { Log } from '../telemetry/log.ts';
import { HttpTransport } from './http-transport.ts';
import type { Link, LinkEvents } from './link.ts';
import { StdioTransport } from './stdio-transport.ts';

export interface LinkOptions {
  readonly config: McpServerConfig;
  readonly instance: string;
  readonly tlsCa: string | null;
  readonly maxMessageBytes: number;
  readonly connectTimeoutMs: number;
  readonly clock: Clock;
  readonly log: Log;
}

/** How long saying goodbye to a server may take, ms. */
const GOODBYE_MS = 500;

/**
 * Makes the transport to a server, not started yet. Secrets are read here and at each request, so
 * that a rotated one is picked up.
 *
 * @throws AgentdError of kind configuration when a secret or the certificate file cannot be read
 */
export function openLink(options: LinkOptions, events: LinkEvents): Link {
  const { transport } = options.config;
  return transport.kind === 'http'
    ? httpLink(transport, options, events)
    : stdioLink(transport, options, events);
}

function httpLink(
  config: Extract<McpServerConfig['transport'], { kind: 'http' }>,
  options: LinkOptions,
  events: LinkEvents,
): Link {
  for (const value of Object.values(config.headers)) if (typeof value === 'object') readHeaderSecret(value);
  const transport = new HttpTransport(
    config.url,
    {
      headers: config.headers,
      tlsCa: options.tlsCa,
      maxMessageBytes: options.maxMessageBytes,
      connectTimeoutMs: options.connectTimeoutMs,
    },
    events,
  );
  return {
    transport,
    get deaf() {
      return transport.deaf;
    },
    ready: transport.streamSettled,
    epitaph: null,
    async close(budgetMs, graceful) {
      if (graceful) await transport.terminate(Math.min(budgetMs, GOODBYE_MS));
      await transport.close();
    },
  };
}

function stdioLink(
  config: Extract<McpServerConfig['transport'], { kind: 'stdio' }>,
  options: LinkOptions,
  events: LinkEvents,
): Link {
  const env = childEnvironment(process.env);
  for (const [name, value] of Object.entries(config.env)) env[name] = resolve(value);
  const transport = new StdioTransport(
    {
      server: options.config.name,
      command: config.command,
      env,
      cwd: config.cwd,
      instance: options.instance,
      maxMessageBytes: options.maxMessageBytes,
      clock: options.clock,
      log: options.log,
    },
    events,
  );
  return {
    transport,
    deaf: transport.deaf,
    ready: transport.ready,
    get epitaph() {
      return transport.epitaph;
    },
    close: (budgetMs) => transport.end(budgetMs),
  };
}

function resolve(value: string | SecretRef): string {
  return typeof value === 'string' ? value : readSecret(value);
}
