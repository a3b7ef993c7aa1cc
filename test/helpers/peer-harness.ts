import type { McpServerConfig } from '../../supervisor/config/config.ts';
import { PeerSet, type PeerSetOptions } from '../../supervisor/mcp/peer-set.ts';
import type { PeerMessage } from '../../supervisor/mcp/peers.ts';
import { systemClock } from '../../supervisor/reactor/clock.ts';
import type { Labels, MetricName, Metrics } from '../../supervisor/telemetry/metrics.ts';
import { type RecordedLine, recordingLog } from './null-log.ts';

/** Metrics that are kept as `name{label=value}` → figure. */
export function recordingMetrics(): { readonly metrics: Metrics; readonly values: Map<string, number> } {
  const values = new Map<string, number>();
  const key = (name: MetricName, labels: Labels = {}): string => {
    const parts = Object.entries(labels).map(([label, value]) => `${label}=${value}`);
    return parts.length === 0 ? name : `${name}{${parts.join(',')}}`;
  };
  const metrics: Metrics = {
    add: (name, labels, by = 1) => values.set(key(name, labels), (values.get(key(name, labels)) ?? 0) + by),
    set: (name, value, labels) => values.set(key(name, labels), value),
    remove: () => undefined,
    observe: (name, _value, labels) =>
      values.set(key(name, labels), (values.get(key(name, labels)) ?? 0) + 1),
    render: async () => '',
  };
  return { metrics, values };
}

export function httpServer(name: string, url: string, more: Partial<McpServerConfig> = {}): McpServerConfig {
  const transport = { kind: 'http' as const, url, headers: {} };
  return { name, transport, tags: [], required: true, timeoutMs: 10_000, ...more };
}

export function stdioServer(
  name: string,
  command: readonly [string, ...string[]],
  more: Partial<McpServerConfig> = {},
): McpServerConfig {
  const transport = { kind: 'stdio' as const, command, env: {}, cwd: null };
  return { name, transport, tags: [], required: true, timeoutMs: 10_000, ...more };
}

/** A PeerSet whose messages can be looked at and waited for. */
export class PeerHarness {
  readonly messages: PeerMessage[] = [];
  readonly lines: RecordedLine[];
  readonly values: Map<string, number>;
  readonly peers: PeerSet;
  private readonly waiting = new Set<() => void>();

  constructor(servers: readonly McpServerConfig[], more: Partial<PeerSetOptions> = {}) {
    const { log, lines } = recordingLog();
    const { metrics, values } = recordingMetrics();
    this.lines = lines;
    this.values = values;
    this.peers = new PeerSet({
      servers,
      clock: systemClock,
      log,
      metrics,
      emit: (message) => {
        this.messages.push(message);
        for (const look of [...this.waiting]) look();
      },
      instance: 'test-instance',
      version: '0.0.0',
      tlsCa: null,
      ...more,
    });
  }

  /** URIs announced, in order, with their cause. */
  get updates(): readonly string[] {
    return this.messages.flatMap((message) =>
      message.type === 'resource.updated' ? [`${message.cause} ${message.uri}`] : [],
    );
  }

  /** Resolves when `condition` holds, looked at after each message. */
  async until(what: string, condition: () => boolean, timeoutMs = 30_000): Promise<void> {
    if (condition()) return;
    await new Promise<void>((resolve, reject) => {
      const look = (): void => {
        if (!condition()) return;
        clearTimeout(timer);
        this.waiting.delete(look);
        resolve();
      };
      const timer = setTimeout(() => {
        this.waiting.delete(look);
        reject(
          new Error(`gave up waiting for ${what}; messages: ${JSON.stringify(this.messages.slice(-20))}`),
        );
      }, timeoutMs);
      this.waiting.add(look);
    });
  }

  /** Resolves at the next report that says every subscription is in force, or the last one, if it said so. */
  async complete(server: string): Promise<void> {
    await this.until(`complete subscriptions of ${server}`, () => {
      const reports = this.messages.filter((one) => one.type === 'subscriptions' && one.server === server);
      const last = reports.at(-1);
      return last?.type === 'subscriptions' && last.complete;
    });
  }
}
