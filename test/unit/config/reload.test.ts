import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Config, McpServerConfig } from '../../../supervisor/config/config.ts';
import { decideReload, type ReloadPart } from '../../../supervisor/config/reload.ts';
import { routeConfig } from '../../helpers/route-config.ts';

const server = (name: string, over: Partial<McpServerConfig> = {}): McpServerConfig => ({
  name,
  transport: { kind: 'http', url: `http://127.0.0.1/${name}`, headers: {} },
  tags: [],
  required: true,
  timeoutMs: 1_000,
  ...over,
});

const BASE: Config = {
  mode: 'reactive',
  identity: { instance: 'one', podUid: null, namespace: null, node: null },
  runId: null,
  traceparent: null,
  instruction: 'work',
  outputContract: null,
  intelligence: {
    endpoints: [{ url: 'script:final', token: null }],
    model: null,
    timeoutMs: 1,
    maxAttempts: 1,
    holdConnection: false,
  },
  mcpServers: [server('a'), server('b')],
  routes: [routeConfig({ match: 'a:///**' })],
  subscriptions: [{ server: null, match: 'a:///**' }],
  standby: null,
  shard: { index: 0, count: 1, timer: 'shard0' },
  schedule: null,
  limits: {
    maxSteps: 1,
    maxTokens: 1,
    maxDepth: 1,
    maxChildren: 1,
    maxTotalSubagents: 1,
    deadlineMs: 1,
    treeTokens: 1,
    budgetTokensLifetime: null,
    noProgressMs: 1,
    warmChildren: 0,
    childMemoryMaxBytes: null,
  },
  lifecycle: { drainTimeoutMs: 1, podGraceMs: null },
  serve: null,
  observability: {
    metricsAddr: null,
    healthFile: null,
    reportFile: null,
    eventsRing: 1,
    serveEvents: true,
    logLevel: 'info',
    logFormat: 'json',
    logContent: false,
    aggregateLogs: false,
    otelEndpoint: null,
    onlyPaths: [],
    inspectChild: null,
  },
  cgroup: null,
  budgetExitCode: null,
  allowTrifecta: false,
  tlsCa: null,
  watchConfig: false,
};

type Path = readonly (string | number)[];

/** Every leaf of the configuration. */
function leaves(value: unknown, path: Path = []): Path[] {
  if (Array.isArray(value)) return value.flatMap((inner, at) => leaves(inner, [...path, at]));
  if (typeof value !== 'object' || value === null) return [path];
  return Object.entries(value).flatMap(([key, inner]) => leaves(inner, [...path, key]));
}

/** The same with one leaf replaced by something it is not. */
function withOther<T>(value: T, [step, ...rest]: Path): T {
  if (step === undefined) return 'something else' as T;
  if (Array.isArray(value))
    return value.map((inner, at) => (at === step ? withOther(inner, rest) : inner)) as T;
  return Object.fromEntries(
    Object.entries(value as object).map(([key, inner]) => [
      key,
      key === step ? withOther(inner, rest) : inner,
    ]),
  ) as T;
}

const RELOADABLE_ROOTS: Readonly<Record<string, ReloadPart>> = {
  instruction: 'agent.instruction',
  outputContract: 'agent.output_contract',
  intelligence: 'intelligence',
  mcpServers: 'mcp.servers',
  subscriptions: 'subscribe',
  routes: 'routes',
  limits: 'limits',
};

/** The part a leaf belongs to; null when it cannot change. */
const partOf = (path: Path): ReloadPart | null => {
  if (path.join('.') === 'observability.logLevel') return 'observability.log.level';
  return RELOADABLE_ROOTS[String(path[0])] ?? null;
};

const LEAVES = leaves(BASE);
const anyLeaves = fc.uniqueArray(fc.constantFrom(...LEAVES), {
  maxLength: 6,
  selector: (path) => path.join('.'),
});

describe('the decision on a new configuration', () => {
  it('is to do nothing about the same one', () => {
    expect(decideReload(BASE, structuredClone(BASE))).toEqual({ kind: 'unchanged' });
  });

  it('applies every change that can be applied and names its part, or rejects the whole', () => {
    fc.assert(
      fc.property(anyLeaves, (paths) => {
        const to = paths.reduce(withOther, BASE);
        const decision = decideReload(BASE, to);
        const parts = paths.map(partOf);
        if (paths.length === 0) expect(decision.kind).toBe('unchanged');
        else if (parts.includes(null)) {
          expect(decision.kind).toBe('reject');
          if (decision.kind === 'reject') {
            expect(decision.keys.length).toBeGreaterThan(0);
            for (const { key, reason } of decision.keys) expect(key && reason).not.toBe('');
          }
        } else {
          expect(decision.kind).toBe('apply');
          if (decision.kind === 'apply') {
            expect([...decision.changes.parts].sort()).toEqual([...new Set(parts)].sort());
          }
        }
      }),
    );
  });

  it('overlooks no leaf of the configuration', () => {
    for (const path of LEAVES) {
      expect(decideReload(BASE, withOther(BASE, path)).kind, path.join('.')).not.toBe('unchanged');
    }
  });

  it.each([
    ['shard.index', { shard: { index: 1, count: 2, timer: 'shard0' } }],
    ['agent.name', { identity: { ...BASE.identity, instance: 'two' } }],
    [
      'serve',
      {
        serve: { url: 'http://127.0.0.1:1', certFile: null, keyFile: null, clientCaFile: null, bearer: null },
      },
    ],
    ['observability.metrics_addr', { observability: { ...BASE.observability, metricsAddr: '127.0.0.1:1' } }],
  ] as const)('names %s when it is what cannot change', (key, over) => {
    expect(decideReload(BASE, { ...BASE, ...over, instruction: 'other work' })).toMatchObject({
      kind: 'reject',
      keys: [{ key }],
    });
  });

  it('says of each server whether it is new, gone or different', () => {
    const names = fc.uniqueArray(fc.constantFrom('a', 'b', 'c', 'd', 'e'));
    fc.assert(
      fc.property(names, names, names, (before, after, retagged) => {
        const from = { ...BASE, mcpServers: before.map((name) => server(name)) };
        const to = {
          ...BASE,
          mcpServers: after.map((name) => server(name, retagged.includes(name) ? { tags: ['egress'] } : {})),
        };
        const decision = decideReload(from, to);
        if (decision.kind !== 'apply') {
          expect(decision.kind).toBe('unchanged');
          expect(to.mcpServers).toEqual(from.mcpServers);
          return;
        }
        const { added, changed, removed } = decision.changes.servers;
        expect(added.map(({ name }) => name)).toEqual(after.filter((name) => !before.includes(name)));
        expect(removed).toEqual(before.filter((name) => !after.includes(name)));
        expect(changed.map(({ name }) => name)).toEqual(
          after.filter((name) => before.includes(name) && retagged.includes(name)),
        );
      }),
    );
  });
});
