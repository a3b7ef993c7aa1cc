import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Metrics } from './metrics.ts';

/** Memory of the cgroup (v2) this process is in, bytes. Null where the platform does not say. */
export interface CgroupMemory {
  /** The tightest limit on the way up; null without one. */
  readonly maxBytes: number | null;
  /** In use in the cgroup that has this limit, or in our own without one. */
  readonly currentBytes: number | null;
}

const MOUNT = '/sys/fs/cgroup';

/** Reads the figures now. Never throws. */
export function readCgroupMemory(mount = MOUNT, membership = '/proc/self/cgroup'): CgroupMemory {
  // v2 has exactly one line that begins with hierarchy 0 and no controllers.
  const own = /^0::(\/.*)$/m.exec(read(membership) ?? '')?.[1];
  // A path that leads out of the namespace has no files here.
  if (own === undefined || own.split('/').includes('..')) return { maxBytes: null, currentBytes: null };
  let tightest: { readonly maxBytes: number; readonly path: string } | null = null;
  for (let path = own; ; path = dirname(path)) {
    const maxBytes = figure(join(mount, path, 'memory.max'));
    if (maxBytes !== null && maxBytes < (tightest?.maxBytes ?? Number.POSITIVE_INFINITY)) {
      tightest = { maxBytes, path };
    }
    if (path === '/') break;
  }
  return {
    maxBytes: tightest?.maxBytes ?? null,
    currentBytes: figure(join(mount, tightest?.path ?? own, 'memory.current')),
  };
}

/** Sets the memory gauges where there is something to say. */
export function publishCgroupMemory(metrics: Metrics, memory: CgroupMemory = readCgroupMemory()): void {
  if (memory.maxBytes !== null) metrics.set('agent_memory_max_bytes', memory.maxBytes);
  if (memory.currentBytes !== null) metrics.set('agent_memory_current_bytes', memory.currentBytes);
}

/** Null for an absent file and for `max`. */
function figure(path: string): number | null {
  const text = read(path)?.trim() ?? '';
  return /^\d+$/.test(text) ? Number(text) : null;
}

function read(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}
