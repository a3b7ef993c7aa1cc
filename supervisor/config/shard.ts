import type { ShardConfig } from './config.ts';
import { type ResolveContext, refuse } from './context.ts';
import { quoted } from './problems.ts';

const FORM = /^(auto|0|[1-9]\d{0,5})\/(0|[1-9]\d{0,5})$/;
const PATH = ['shard', 'index'];

/** Reads `K/N` or `auto/N`. Anything that is not exactly that is refused: a wrong shard loses items. */
export function resolveShard(
  text: string,
  timer: ShardConfig['timer'],
  context: ResolveContext,
): ShardConfig {
  const unsharded: ShardConfig = { index: 0, count: 1, timer };
  const found = FORM.exec(text);
  if (found === null) {
    refuse(context, PATH, `the shard ${quoted(text)} is not K/N or auto/N in plain decimal numbers`);
    return unsharded;
  }
  const count = Number(found[2]);
  if (count === 0) {
    refuse(context, PATH, `the shard ${text} divides the items among 0 shards`);
    return unsharded;
  }
  const index = found[1] === 'auto' ? ordinal(text, context) : Number(found[1]);
  if (index === null) return unsharded;
  if (index >= count) {
    refuse(
      context,
      PATH,
      `shard ${index} does not exist among ${count}${found[1] === 'auto' ? ` (${text})` : ''}`,
      { remedy: `K counts from 0: the last of ${count} is ${count - 1}/${count}.` },
    );
    return unsharded;
  }
  return { index, count, timer };
}

/** `K/N` as it is told to others; null when unsharded. */
export function shardLabel({ index, count }: Pick<ShardConfig, 'index' | 'count'>): string | null {
  return count > 1 ? `${index}/${count}` : null;
}

/** The trailing number of a pod (`worker-3`) or unit (`agentd@3.service`) name. */
function ordinal(text: string, context: ResolveContext): number | null {
  const variable = ['AGENT_POD_NAME', 'HOSTNAME'].find((name) => (context.env[name] ?? '') !== '');
  const name = variable === undefined ? '' : (context.env[variable] ?? '');
  const found = /(?:^|[^0-9])(\d{1,6})(?:\.service)?$/.exec(name);
  if (found !== null) return Number(found[1]);
  const reason =
    variable === undefined
      ? 'neither AGENT_POD_NAME nor HOSTNAME is set'
      : `${variable}=${quoted(name)} does not end in a number`;
  refuse(context, PATH, `the shard ${text} takes its number from the pod or unit name, but ${reason}`, {
    remedy: 'Run it in a StatefulSet or as a numbered unit, or write the shard as K/N.',
  });
  return null;
}
