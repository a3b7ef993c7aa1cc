import { constants } from 'node:fs';
import { access, realpath, stat } from 'node:fs/promises';
import { AgentdError, errorMessage } from '../../protocol/errors.ts';

/**
 * The real path of a folder that can be served.
 *
 * @throws AgentdError INBOX_FOLDER_UNUSABLE
 */
export async function resolveFolder(folder: string): Promise<string> {
  try {
    const root = await realpath(folder);
    if (!(await stat(root)).isDirectory()) throw new Error('it is not a folder');
    await access(root, constants.R_OK | constants.X_OK);
    return root;
  } catch (error) {
    throw unusable(folder, error);
  }
}

/** The error for a folder that cannot be served, saying why in words. */
export function unusable(folder: string, error: unknown): AgentdError {
  const code = (error as NodeJS.ErrnoException).code;
  const reasons: Readonly<Record<string, string>> = {
    ENOENT: 'it does not exist',
    ENOTDIR: 'it is not a folder',
    EACCES: 'this user may not read it',
  };
  const reason = reasons[code ?? ''] ?? errorMessage(error);
  return new AgentdError('INBOX_FOLDER_UNUSABLE', `cannot serve the folder ${folder}: ${reason}`, {
    cause: error,
  });
}
