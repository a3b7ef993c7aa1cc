import { AgentdError, errorMessage } from '../../protocol/errors.ts';
import type { Config } from '../config/config.ts';
import type { ConfigInForce } from '../config/in-force.ts';
import type { LoadedConfig } from '../config/load.ts';
import { decideReload, type ReloadChanges, type ReloadPart } from '../config/reload.ts';
import type { Clock } from '../reactor/clock.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { Connections, PreparedServers } from './connections.ts';
import type { Service } from './systemd-service.ts';

export interface ReloadDeps {
  /** Reads and validates the configuration as at the start. @throws AgentdError */
  readonly load: () => Promise<LoadedConfig>;
  readonly settings: ConfigInForce;
  readonly prepare: Connections['prepare'];
  /** Puts it into force. Must not fail. */
  readonly apply: (config: Config, changes: ReloadChanges, prepared: PreparedServers) => void;
  /** Carries something out on the reactor, between two events. */
  readonly onReactor: (act: () => void) => void;
  readonly draining: () => boolean;
  /** A configuration was read: these are its files from now on. */
  readonly read: (files: readonly string[]) => void;
  /** An attempt has ended, either way. */
  readonly ended: () => void;
  readonly service: Pick<Service, 'reloading' | 'reloaded'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
}

/**
 * Replaces the configuration of a running supervisor: all of it or nothing. It is read and validated
 * and its servers are connected before anything changes; a configuration that fails on the way leaves
 * the one in force as it is. One at a time; requests that come meanwhile are one more.
 */
export class Reload {
  private state: 'starting' | 'idle' | 'busy' = 'starting';
  private wanted = false;

  constructor(private readonly deps: ReloadDeps) {}

  /** From here on requests are followed; one that came during the start is followed now. */
  started(): void {
    this.state = 'idle';
    this.next();
  }

  request(): void {
    this.wanted = true;
    this.next();
  }

  private next(): void {
    if (this.state !== 'idle' || !this.wanted || this.deps.draining()) return;
    this.wanted = false;
    this.state = 'busy';
    void this.reload().finally(() => {
      this.state = 'idle';
      this.next();
    });
  }

  private async reload(): Promise<void> {
    const { deps } = this;
    deps.service.reloading();
    try {
      const loaded = await deps.load();
      const decision = decideReload(deps.settings.current(), loaded.config);
      switch (decision.kind) {
        case 'reject':
          throw notReloadable(decision.keys);
        case 'apply':
          await this.bring(loaded.config, decision.changes);
          this.applied(loaded, [...decision.changes.parts]);
          return;
        case 'unchanged':
          this.applied(loaded, []);
      }
    } catch (error) {
      this.rejected(error);
    } finally {
      deps.service.reloaded();
      deps.ended();
    }
  }

  private async bring(config: Config, changes: ReloadChanges): Promise<void> {
    const { deps } = this;
    const prepared = await deps.prepare(config, changes.servers);
    const inForce = await new Promise<boolean>((resolve) =>
      deps.onReactor(() => {
        const draining = deps.draining();
        if (!draining) deps.apply(config, changes, prepared);
        resolve(!draining);
      }),
    );
    if (inForce) return;
    await prepared.abandon();
    throw new AgentdError('CONFIG_NOT_RELOADABLE', 'a drain has begun', {
      remedy: 'Nothing: the process is about to end.',
    });
  }

  private applied(loaded: LoadedConfig, changed: readonly ReloadPart[]): void {
    const { log, metrics, settings, clock, read } = this.deps;
    settings.lastReload = { result: 'applied', at: new Date(clock.wall()).toISOString(), reason: null };
    metrics.add('agent_config_reload_total', { result: 'applied' });
    for (const msg of loaded.warnings) log.warn('config.warn', { msg });
    const msg = changed.length === 0 ? 'nothing has changed' : `in force: ${changed.join(', ')}`;
    log.info('config.reloaded', { generation: settings.generation, changed, msg });
    read(loaded.files);
  }

  private rejected(error: unknown): void {
    const { log, metrics, settings, clock } = this.deps;
    const reason = errorMessage(error);
    settings.lastReload = { result: 'rejected', at: new Date(clock.wall()).toISOString(), reason };
    metrics.add('agent_config_reload_total', { result: 'rejected' });
    const known = error instanceof AgentdError;
    log.error('config.invalid', {
      generation: settings.generation,
      err: { type: known ? error.code : 'INTERNAL', message: reason },
      ...(known ? { remedy: error.remedy } : {}),
      msg: 'the configuration in force stays in force',
    });
  }
}

function notReloadable(keys: readonly { readonly key: string; readonly reason: string }[]): AgentdError {
  const why = keys.map(({ key, reason }) => `${key} cannot change while agentd runs (${reason})`).join('; ');
  const names = keys.map(({ key }) => key).join(', ');
  return new AgentdError('CONFIG_NOT_RELOADABLE', why, {
    remedy: `Restart agentd to change ${names}, or set ${keys.length === 1 ? 'it' : 'them'} back and reload the rest.`,
  });
}
