import type { ConfigDocument } from './schema.ts';

/**
 * What of the contract this build serves. The one place to edit when a feature lands: refusals,
 * the capabilities manifest and the documentation all read it.
 */
export const IMPLEMENTED = {
  standby: false,
  watch_config: false,
  management: false,
  claim_resource: false,
  shard_key: false,
  cgroup: false,
  aggregate_logs: false,
  otel: false,
} as const satisfies Record<string, boolean>;

export type Feature = keyof typeof IMPLEMENTED;

/** A use of a feature in a configuration. */
export interface FeatureUse {
  readonly feature: Feature;
  readonly path: readonly (string | number)[];
}

/** Every use of a feature this build does not serve. */
export function unimplementedUses(document: ConfigDocument): FeatureUse[] {
  return featureUses(document).filter(({ feature }) => !isImplemented(feature));
}

export function isImplemented(feature: Feature): boolean {
  return IMPLEMENTED[feature];
}

function featureUses({ standby, serve, cgroup, observability, ...rest }: ConfigDocument): FeatureUse[] {
  const uses: FeatureUse[] = [];
  const use = (feature: Feature, path: FeatureUse['path'], when: boolean): void => {
    if (when) uses.push({ feature, path });
  };
  use('standby', ['standby', 'enabled'], standby.enabled);
  use('standby', ['standby', 'assign_from'], standby.assign_from !== undefined);
  use('standby', ['standby', 'warm_intelligence'], standby.warm_intelligence === true);
  use('watch_config', ['watch_config'], rest.watch_config);
  for (const key of ['mcp', 'cert', 'key', 'client_ca', 'bearer'] as const) {
    use('management', ['serve', key], serve[key] !== undefined);
  }
  for (const key of ['root', 'memory_max', 'pids_max'] as const) {
    use('cgroup', ['cgroup', key], cgroup[key] !== undefined);
  }
  use('aggregate_logs', ['observability', 'log', 'aggregate'], observability.log.aggregate);
  use('otel', ['observability', 'otel'], observability.otel !== undefined);
  for (const [at, route] of rest.routes.entries()) {
    use('claim_resource', ['routes', at, 'claim', 'style'], route.claim?.style === 'resource');
    use('shard_key', ['routes', at, 'shard_key'], route.shard_key !== 'uri');
  }
  return uses;
}
