import type { McpServerConfig } from '../config/config.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { Connection } from './connection.ts';
import { DEFAULT_TIMINGS } from './connection-options.ts';
import type { PeerSetOptions } from './peer-set.ts';
import type { PeerMessage } from './peers.ts';
import { retryForEver, retryGoverned } from './retry-policy.ts';

/**
 * A server with its connection. Only a member speaks for its server: one that is tried out before it
 * takes part, or that stays open for runs of earlier, is heard neither in messages nor in gauges.
 */
export class Member {
  readonly connection: Connection;
  private speaks = false;

  constructor(
    readonly config: McpServerConfig,
    private readonly options: PeerSetOptions,
    deliver: (message: PeerMessage) => void,
  ) {
    const { clock, metrics, instance, version, tlsCa, random = Math.random } = options;
    const stdio = config.transport.kind === 'stdio';
    this.connection = new Connection({
      config,
      instance,
      client: { name: 'agentd', version },
      tlsCa,
      clock,
      log: options.log.as({ comp: 'mcp' }),
      metrics: this.audible(metrics),
      random,
      emit: (message) => {
        if (this.speaks) deliver(message);
      },
      retry: stdio ? retryGoverned(clock, random, config.required) : retryForEver(random),
      timings: { ...DEFAULT_TIMINGS, ...options.timings },
    });
  }

  get name(): string {
    return this.config.name;
  }

  speak(): void {
    this.speaks = true;
    const up = this.connection.state === 'live' ? 1 : 0;
    this.options.metrics.set('agent_mcp_up', up, { server: this.name });
  }

  hush(): void {
    this.speaks = false;
  }

  private audible(metrics: Metrics): Metrics {
    return {
      ...metrics,
      set: (name, value, labels) => {
        if (this.speaks) metrics.set(name, value, labels);
      },
    };
  }
}
