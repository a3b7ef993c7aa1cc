import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { AgentdError, errorMessage } from '../../protocol/errors.ts';
import { headerProblem } from './header-text.ts';

/**
 * A reference to a secret, written `{{secret:NAME}}` or `{{secret-file:PATH}}`. The value is read
 * when it is used and never stored, so it can rotate and cannot leak through a dump (invariant 9).
 */
export type SecretRef =
  | { readonly secret: 'env'; readonly name: string }
  | { readonly secret: 'file'; readonly path: string }
  /** Text around references, as in `Bearer {{secret:TOKEN}}`. */
  | { readonly secret: 'template'; readonly parts: readonly (string | SecretRef)[] };

/** One reference; groups: `-file` or nothing, then name or path, which may hold a `${NAME}`. */
const REFERENCE = /\{\{\s*secret(-file)?:\s*((?:\$\{[^{}]*\}|[^{}])+?)\s*\}\}/g;

/**
 * Reads the references in a text. Null when it holds none.
 *
 * @param cwd what a relative path is relative to
 * @param literal applied to every name, path and text between (for `${NAME}` expansion), after the
 *   references were found: what a variable holds can never become a reference
 */
export function parseSecret(
  text: string,
  cwd: string,
  literal: (text: string) => string = (same) => same,
): SecretRef | null {
  const parts: (string | SecretRef)[] = [];
  let end = 0;
  for (const found of text.matchAll(REFERENCE)) {
    const [whole, file, target = ''] = found;
    if (found.index > end) parts.push(literal(text.slice(end, found.index)));
    parts.push(
      file === undefined
        ? { secret: 'env', name: literal(target) }
        : { secret: 'file', path: resolve(cwd, literal(target)) },
    );
    end = found.index + whole.length;
  }
  if (end === 0) return null;
  if (end < text.length) parts.push(literal(text.slice(end)));
  const [only] = parts;
  return parts.length === 1 && typeof only === 'object' ? only : { secret: 'template', parts };
}

/** How a reference is written in a configuration. Reveals nothing. */
export function formatSecret(ref: SecretRef): string {
  switch (ref.secret) {
    case 'env':
      return `{{secret:${ref.name}}}`;
    case 'file':
      return `{{secret-file:${ref.path}}}`;
    case 'template':
      return ref.parts.map((part) => (typeof part === 'string' ? part : formatSecret(part))).join('');
  }
}

/**
 * Reads the value of a secret now.
 *
 * @throws AgentdError SECRET_UNREADABLE when the variable is unset or the file cannot be read
 */
export function readSecret(ref: SecretRef, env: NodeJS.ProcessEnv = process.env): string {
  switch (ref.secret) {
    case 'env':
      return readVariable(ref.name, env);
    case 'file':
      return readFile(ref.path);
    case 'template':
      return ref.parts.map((part) => (typeof part === 'string' ? part : readSecret(part, env))).join('');
  }
}

/**
 * Reads the value of a secret that goes into an HTTP header. One that a header cannot hold is refused
 * here, by its source: whatever sends it would quote it, and take the refusal for a network fault.
 *
 * @throws AgentdError SECRET_UNREADABLE, or SECRET_UNUSABLE when a header cannot hold it
 */
export function readHeaderSecret(ref: SecretRef, env: NodeJS.ProcessEnv = process.env): string {
  if (ref.secret === 'template') {
    return ref.parts
      .map((part) => (typeof part === 'string' ? usable(part, ref) : readHeaderSecret(part, env)))
      .join('');
  }
  return usable(readSecret(ref, env), ref);
}

function usable(value: string, ref: SecretRef): string {
  const problem = headerProblem(value);
  if (problem === null) return value;
  throw new AgentdError('SECRET_UNUSABLE', `${sourceOf(ref)} ${problem}, so no HTTP header can carry it`);
}

function sourceOf(ref: SecretRef): string {
  switch (ref.secret) {
    case 'env':
      return `secret ${ref.name} in the environment`;
    case 'file':
      return `secret file ${ref.path}`;
    case 'template':
      return `the text around the secret in ${formatSecret(ref).replaceAll(/[^\x20-\x7e]/g, '?')}`;
  }
}

function readVariable(name: string, env: NodeJS.ProcessEnv): string {
  const value = env[name];
  if (value !== undefined && value !== '') return value;
  throw new AgentdError('SECRET_UNREADABLE', `secret ${name} is not set in the environment`, {
    remedy: `Set ${name}, or refer to a file with {{secret-file:PATH}}.`,
  });
}

function readFile(path: string): string {
  try {
    return readFileSync(path, 'utf8').trimEnd();
  } catch (error) {
    throw new AgentdError('SECRET_UNREADABLE', `secret file ${path} cannot be read: ${errorMessage(error)}`, {
      cause: error,
      remedy: 'Check the path and that this user may read it.',
    });
  }
}
