import { createHash } from 'node:crypto';

/** JSON with the keys of every object in order, so that equal values have equal texts. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, part: unknown) => {
    if (typeof part !== 'object' || part === null || Array.isArray(part)) return part;
    const source = part as Record<string, unknown>;
    const sorted: [string, unknown][] = [];
    for (const key of Object.keys(source).sort()) sorted.push([key, source[key]]);
    return Object.fromEntries(sorted);
  });
}

/** A key in use. */
export interface IssuedKey {
  readonly key: string;
  /**
   * The call was not answered, so nobody knows whether it took effect: the next identical call is
   * its retry and presents the same key.
   */
  unanswered(): void;
}

/**
 * Idempotency keys of one supervisor's tool calls: `run:hash:n`, where the hash is over server, tool
 * and arguments and n counts the earlier identical calls of the run. A replay of the run presents
 * the same keys, and different calls never share one.
 */
export class IdempotencyKeys {
  /** Run → hash → which n are taken. */
  private readonly runs = new Map<string, Map<string, Set<number>>>();

  /** @param args the arguments as {@link canonicalJson} */
  issue(runId: string, server: string, tool: string, args: string): IssuedKey {
    const hash = createHash('sha256').update(`${server}\0${tool}\0${args}`).digest('hex').slice(0, 16);
    const calls = getOr(this.runs, runId, () => new Map<string, Set<number>>());
    const taken = getOr(calls, hash, () => new Set<number>());
    // Taken numbers are dense but for retries, so the search is short.
    let n = taken.size;
    for (let index = 0; index < taken.size; index++) {
      if (taken.has(index)) continue;
      n = index;
      break;
    }
    taken.add(n);
    return { key: `${runId}:${hash}:${n}`, unanswered: () => taken.delete(n) };
  }

  /** The run has ended. */
  forget(runId: string): void {
    this.runs.delete(runId);
  }

  /** Runs that are remembered. */
  get size(): number {
    return this.runs.size;
  }
}

function getOr<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const found = map.get(key);
  if (found !== undefined) return found;
  const made = make();
  map.set(key, made);
  return made;
}
