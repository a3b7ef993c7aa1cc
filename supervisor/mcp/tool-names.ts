import { createHash } from 'node:crypto';

/** What model endpoints accept as the name of a function. */
const MAX_NAME = 64;
const NOT_ALLOWED = /[^A-Za-z0-9_-]/g;
const SUFFIX = 8;

export interface NamedTool {
  readonly server: string;
  readonly tool: string;
}

/**
 * Names for the model: `server__tool`, with every character outside [A-Za-z0-9_-] as `_` and at
 * most 64 characters. Names that would be the same, or are cut, end in eight digits of a hash of
 * server and tool, so that they do not depend on the order in which servers answer.
 *
 * @returns the names, in the order of `tools`
 */
export function modelNames(tools: readonly NamedTool[]): readonly string[] {
  const plain = tools.map(({ server, tool }) => `${server}__${tool}`.replace(NOT_ALLOWED, '_'));
  const uses = new Map<string, number>();
  for (const name of plain) uses.set(name, (uses.get(name) ?? 0) + 1);
  return tools.map((named, index) => {
    const name = plain[index] ?? '';
    if (name.length <= MAX_NAME && uses.get(name) === 1) return name;
    return `${name.slice(0, MAX_NAME - SUFFIX - 1)}_${digest(named)}`;
  });
}

function digest({ server, tool }: NamedTool): string {
  return createHash('sha256').update(`${server}\0${tool}`).digest('hex').slice(0, SUFFIX);
}
