import { Fnv1a64 } from '../../protocol/fnv1a64.ts';
import type { ShardKeyConfig } from '../config/config.ts';
import type { ResourceInfo } from '../mcp/peers.ts';

/** One hasher for all: the gate is called from the reactor only. */
const hasher = new Fnv1a64();

/**
 * Whether a key belongs to shard `index` of `count`: fnv1a64(key) mod count = index over UTF-8
 * bytes (contract, section 9). For a given count, every key belongs to exactly one shard.
 */
export function inShard(key: string, index: number, count: number): boolean {
  return count === 1 || hasher.reset().text(key).modulo(count) === index;
}

/** Computes the shard key of an update on one route; compiled once per route. */
export type ShardKey = (uri: string, info: ResourceInfo | null) => string;

/**
 * Compiles a route's shard key. An update that the rule does not fit falls back to its whole URI,
 * so that every update belongs to some shard.
 */
export function compileShardKey(config: ShardKeyConfig): ShardKey {
  switch (config.kind) {
    case 'uri':
      return (uri) => uri;
    case 'segment': {
      const pattern = segmentPattern(config.template, config.name);
      return (uri) => pattern.exec(uri)?.groups?.key ?? uri;
    }
    case 'regex': {
      const pattern = new RegExp(config.pattern, 'u');
      return (uri) => {
        const found = pattern.exec(uri);
        const { group } = config;
        return (typeof group === 'number' ? found?.[group] : found?.groups?.[group]) ?? uri;
      };
    }
    case 'metadata':
      return (uri, info) => {
        const value = info === null ? undefined : atPointer(info.meta, config.pointer);
        return typeof value === 'string' || typeof value === 'number' ? String(value) : uri;
      };
  }
}

/** `queue:///{tenant}/{item}` with name `tenant` → a pattern whose group `key` is that segment. */
function segmentPattern(template: string, name: string): RegExp {
  const source = template
    .split(/(\{[^}]+\})/)
    .map((part) => {
      if (part === `{${name}}`) return '(?<key>[^/]+)';
      if (part.startsWith('{')) return '[^/]+';
      return part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
    })
    .join('');
  return new RegExp(`^${source}`, 'u');
}

/** RFC 6901. */
function atPointer(document: unknown, pointer: string): unknown {
  let value = document;
  for (const token of pointer.split('/').slice(1)) {
    const key = token.replaceAll('~1', '/').replaceAll('~0', '~');
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined;
    value = (value as Record<string, unknown>)[key];
  }
  return value;
}
