import type { RouteConfig } from '../../supervisor/config/config.ts';

/** A spawn route on everything, with what a test cares about replaced. */
export function routeConfig(over: Partial<RouteConfig> = {}): RouteConfig {
  const match = over.match ?? 'test:///**';
  return {
    name: match,
    server: null,
    match,
    disposition: { kind: 'spawn' },
    claim: null,
    instruction: null,
    outputContract: null,
    shardKey: { kind: 'uri' },
    debounceMs: 0,
    maxInflight: 4,
    queueCap: null,
    overflow: 'coalesce',
    tools: null,
    ...over,
  };
}
