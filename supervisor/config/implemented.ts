import type { ConfigDocument } from './schema.ts';
import type { TreePath } from './tree.ts';

/**
 * What of the contract this build serves. The one place to edit when a feature lands: refusals,
 * the capabilities manifest and the documentation all read it.
 */
export const IMPLEMENTED = {
  standby: true,
  watch_config: true,
  management: true,
  claim_resource: true,
  shard_key: true,
  cgroup: true,
  aggregate_logs: true,
  otel: true,
} as const satisfies Record<string, boolean>;

export type Feature = keyof typeof IMPLEMENTED;

/** The keys that use a feature; a route's are looked at one by one. */
export const FEATURE_KEYS: Readonly<Record<Feature, readonly string[]>> = {
  standby: ['standby.enabled', 'standby.assign_from', 'standby.warm_intelligence'],
  watch_config: ['watch_config'],
  management: ['serve.mcp', 'serve.cert', 'serve.key', 'serve.client_ca', 'serve.bearer'],
  claim_resource: [],
  shard_key: ['routes[].shard_key'],
  cgroup: ['cgroup.root', 'cgroup.memory_max', 'cgroup.pids_max'],
  aggregate_logs: ['observability.log.aggregate'],
  otel: ['observability.otel'],
};

/** A use of a feature in a configuration. */
export interface FeatureUse {
  readonly feature: Feature;
  readonly path: TreePath;
}

export function isImplemented(feature: Feature): boolean {
  return IMPLEMENTED[feature];
}

/** Every use of a feature this build does not serve. */
export function unimplementedUses(document: ConfigDocument): FeatureUse[] {
  return [...keyUses(document), ...routeUses(document)].filter(({ feature }) => !isImplemented(feature));
}

/** A key is used when it holds anything but "off". */
function keyUses(document: ConfigDocument): FeatureUse[] {
  return FEATURES.flatMap((feature) =>
    FEATURE_KEYS[feature]
      .filter((key) => !key.includes('[]'))
      .map((key) => ({ feature, path: key.split('.') }))
      .filter(({ path }) => isSaid(valueAt(document, path))),
  );
}

function routeUses({ routes }: ConfigDocument): FeatureUse[] {
  return routes.flatMap(({ claim, shard_key: shardKey }, at): FeatureUse[] => [
    ...(claim?.style === 'resource'
      ? [{ feature: 'claim_resource', path: ['routes', at, 'claim', 'style'] } as const]
      : []),
    ...(shardKey === 'uri' ? [] : [{ feature: 'shard_key', path: ['routes', at, 'shard_key'] } as const]),
  ]);
}

function isSaid(value: unknown): boolean {
  return value !== undefined && value !== false;
}

function valueAt(document: ConfigDocument, path: readonly string[]): unknown {
  let here: unknown = document;
  for (const step of path) {
    here = Object.entries(here ?? {}).find(([key]) => key === step)?.[1];
  }
  return here;
}

const FEATURES = Object.keys(IMPLEMENTED) as readonly Feature[];

/** The features this build serves, for the manifest. */
export function implementedFeatures(): Feature[] {
  return FEATURES.filter(isImplemented);
}

/** The feature a key waits for, if this build does not serve it. */
export function missingFeature(key: string): Feature | null {
  return FEATURES.find((feature) => !isImplemented(feature) && FEATURE_KEYS[feature].includes(key)) ?? null;
}
