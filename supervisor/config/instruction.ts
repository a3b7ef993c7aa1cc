import { readFileSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { errorMessage } from '../../protocol/errors.ts';
import { type ResolveContext, refuse } from './context.ts';
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
  const fileRank = context.rank([...path, 'instruction_file']);
  const textRank = context.rank([...path, 'instruction']);
  if (instruction !== undefined && textRank > fileRank) return instruction;
  if (instruction !== undefined && textRank === fileRank) {
    refuse(context, [...path, 'instruction'], `${what} has both an instruction and an instruction file`);
  }
  try {
    const full = resolve(context.cwd, file);
    const stat = statSync(full);
    if (!stat.isFile()) throw new Error('it is not a regular file');
    if (stat.size > MAX_BYTES) throw new Error(`it is larger than ${MAX_BYTES} bytes`);
    const text = readFileSync(full, 'utf8').trim();
    if (text === '') throw new Error('it is empty');
    return text;
  } catch (error) {
    const reason = errorMessage(error).replace(/^ENOENT:.*/, 'it does not exist');
    refuse(context, [...path, 'instruction_file'], `the instruction file ${file} cannot be read: ${reason}`, {
      left: 'out',
    });
    return null;
  }
}
