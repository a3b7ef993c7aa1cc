import type { ShardKeyConfig } from './config.ts';
import { type ResolveContext, refuse } from './context.ts';
import { quoted } from './problems.ts';
import type { RouteDocument } from './schema.ts';
import type { TreePath } from './tree.ts';

/**
 * Reads a route's shard key. A rule that could never yield what it names is refused: it would fall
 * back to the whole URI everywhere, silently.
 */
export function resolveShardKey(
  document: RouteDocument['shard_key'],
  path: TreePath,
  what: string,
  context: ResolveContext,
): ShardKeyConfig {
  if (document === 'uri') return { kind: 'uri' };
  const at = [...path, 'shard_key'];
  if ('segment' in document) {
    const { segment, template } = document;
    if (!template.includes(`{${segment}}`)) {
      refuse(
        context,
        [...at, 'segment'],
        `the shard key of ${what} is the segment ${segment}, which its template ${quoted(template)} does not have`,
        { remedy: `Write {${segment}} where it stands in the URI, as in queue:///{${segment}}/{item}.` },
      );
    }
    return { kind: 'segment', name: segment, template };
  }
  if ('regex' in document) {
    checkGroup(document.regex, document.group, at, what, context);
    return { kind: 'regex', pattern: document.regex, group: document.group };
  }
  // RFC 6901: empty for the whole document, which is no key.
  if (!/^(\/([^~]|~[01])*)+$/.test(document.metadata)) {
    refuse(
      context,
      [...at, 'metadata'],
      `the shard key of ${what} is ${quoted(document.metadata)}, which is no JSON pointer`,
      { remedy: 'A pointer begins with a slash, as in /tenant.' },
    );
  }
  return { kind: 'metadata', pointer: document.metadata };
}

function checkGroup(
  pattern: string,
  group: string | number,
  path: TreePath,
  what: string,
  context: ResolveContext,
): void {
  let groups: RegExpExecArray | null;
  try {
    // With an empty alternative it matches anything, and the match lists every group it has.
    groups = new RegExp(`${pattern}|`, 'u').exec('');
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    refuse(context, [...path, 'regex'], `the shard key of ${what} cannot be read: ${reason}`);
    return;
  }
  const known =
    typeof group === 'number'
      ? group >= 0 && group < (groups?.length ?? 0)
      : Object.hasOwn(groups?.groups ?? {}, group);
  if (!known) {
    refuse(
      context,
      [...path, 'group'],
      `the shard key of ${what} is group ${group}, which the expression ${quoted(pattern)} does not have`,
    );
  }
}
