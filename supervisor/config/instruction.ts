import { readFileSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { errorMessage } from '../../protocol/errors.ts';
import { type ResolveContext, refuse } from './context.ts';
import { dotted } from './issues.ts';
import type { TreePath } from './tree.ts';

/** Part of every request to the model; more than this is a mistake. */
const MAX_BYTES = 1024 * 1024;

/**
 * The instruction of the agent or of a route: given as text or in a file, the later layer deciding.
 * Null when neither was given.
 */
export function readInstruction(
  given: { readonly instruction?: string | undefined; readonly instruction_file?: string | undefined },
  path: TreePath,
  what: string,
  context: ResolveContext,
): string | null {
  const { instruction, instruction_file: file } = given;
  if (file === undefined) return instruction ?? null;
  const named = (key: string): string => nameOf([...path, key], context);
  const fileRank = context.rank([...path, 'instruction_file']);
  const textRank = context.rank([...path, 'instruction']);
  if (instruction !== undefined && textRank > fileRank) return instruction;
  if (instruction !== undefined && textRank === fileRank) {
    refuse(context, [...path, 'instruction'], `${what} has both an instruction and an instruction file`, {
      remedy: `Drop ${named('instruction_file')} to use the text, or ${named('instruction')} to use the file.`,
    });
  }
  const full = resolve(context.cwd, file);
  try {
    const stat = statSync(full);
    if (!stat.isFile()) throw new Error('it is not a regular file');
    if (stat.size > MAX_BYTES) throw new Error(`it is larger than ${MAX_BYTES} bytes`);
    const text = readFileSync(full, 'utf8').trim();
    if (text === '') throw new Error('it is empty');
    return text;
  } catch (error) {
    const reason = errorMessage(error).replace(/^ENOENT:.*/, 'it does not exist');
    refuse(context, [...path, 'instruction_file'], `the instruction file ${file} cannot be read: ${reason}`, {
      remedy: `Put the instruction into ${full}, or correct the path in ${named('instruction_file')}.`,
      left: 'out',
    });
    return null;
  }
}

/** What a person changes: the flag, or the key and where it stands. */
function nameOf(path: TreePath, context: ResolveContext): string {
  const where = context.where(path);
  if (where === '--instruction') return '--instruction (or the text after `agentd run`)';
  if (where?.startsWith('--')) return where;
  return where === null ? dotted(path) : `${dotted(path)} (${where})`;
}
