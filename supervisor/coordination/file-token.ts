import { statSync } from 'node:fs';
import { readHeaderSecret } from '../config/secret.ts';

/**
 * A token kept in a file, read again whenever the file changes, so that it can rotate without a
 * restart. It is never stored anywhere else (invariant 9).
 *
 * @throws AgentdError SECRET_UNREADABLE or SECRET_UNUSABLE, now and at every later reading
 */
export function fileToken(path: string): () => string {
  let seen = '';
  let token = '';
  const read = (): string => {
    const stat = statSync(path, { throwIfNoEntry: false });
    const mark = stat === undefined ? 'absent' : `${stat.ino}:${stat.mtimeMs}:${stat.size}`;
    if (mark === seen) return token;
    token = readHeaderSecret({ secret: 'file', path });
    seen = mark;
    return token;
  };
  read();
  return read;
}
