import type { Config } from './config.ts';

/** How the last attempt to change the configuration ended. */
export interface LastReload {
  readonly result: 'applied' | 'rejected';
  /** RFC 3339, UTC. */
  readonly at: string;
  /** Why it was rejected; null when it was applied. */
  readonly reason: string | null;
}

/** The configuration in force. Whoever needs it asks at the moment of need, and keeps no copy. */
export class ConfigInForce {
  /** Grows by one each time another configuration comes into force. */
  generation = 1;
  lastReload: LastReload | null = null;

  constructor(private config: Config) {}

  readonly current = (): Config => this.config;

  replace(config: Config): void {
    this.config = config;
    this.generation += 1;
  }
}
