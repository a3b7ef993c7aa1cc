import type { McpServerConfig } from '../config/config.ts';
import type { Clock } from '../reactor/clock.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { PeerMessage } from './peers.ts';
import type { RetryPolicy } from './retry-policy.ts';

/** Deadlines and caps of a connection. All have defaults in {@link DEFAULT_TIMINGS}. */
export interface ConnectionTimings {
  /** Longest for transport, handshake and first listing together, each, ms. */
  readonly connectMs: number;
  /** Silence after which the server is asked whether it lives, and how long it may take to say so, ms. */
  readonly pingMs: number;
  /** Deadline of one subscribe or listing request, ms. */
  readonly subscribeMs: number;
  /** How long tearing down a lost connection may take, ms. */
  readonly teardownMs: number;
  readonly relistMs: number;
  readonly maxMessageBytes: number;
}

export const DEFAULT_TIMINGS: ConnectionTimings = {
  connectMs: 10_000,
  pingMs: 10_000,
  subscribeMs: 30_000,
  teardownMs: 5_000,
  relistMs: 30_000,
  maxMessageBytes: 16 * 1024 * 1024,
};

export interface ConnectionOptions {
  readonly config: McpServerConfig;
  readonly instance: string;
  readonly client: { readonly name: string; readonly version: string };
  readonly tlsCa: string | null;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly random: () => number;
  readonly emit: (message: PeerMessage) => void;
  readonly retry: RetryPolicy;
  readonly timings: ConnectionTimings;
}
