import { readFileSync } from 'node:fs';
import { AgentdError, errorMessage } from '../../protocol/errors.ts';

/**
 * A reference to a secret, written `{{secret:NAME}}` or `{{secret-file:PATH}}`. The value is read
 * when it is used and never stored, so it can rotate and cannot leak through a dump (invariant 9).
 */
export type SecretRef =
  | { readonly secret: 'env'; readonly name: string }
  | { readonly secret: 'file'; readonly path: string };

/**
 * Reads the value of a secret now.
 *
 * @throws AgentdError CONFIG_INVALID when the variable is unset or the file cannot be read
 */
export function readSecret(ref: SecretRef, env: NodeJS.ProcessEnv = process.env): string {
  if (ref.secret === 'env') {
    const value = env[ref.name];
    if (value === undefined || value === '') {
      throw new AgentdError('CONFIG_INVALID', `secret ${ref.name} is not set in the environment`, {
        remedy: `Set ${ref.name}, or refer to a file with {{secret-file:PATH}}.`,
      });
    }
    return value;
  }
  try {
    return readFileSync(ref.path, 'utf8').trimEnd();
  } catch (error) {
    throw new AgentdError(
      'CONFIG_INVALID',
      `secret file ${ref.path} cannot be read: ${errorMessage(error)}`,
      {
        cause: error,
        remedy: 'Check the path and that this user may read it.',
      },
    );
  }
}
