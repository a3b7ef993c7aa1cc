import { parseSecret } from './secret.ts';
import { SecretValue } from './tree.ts';

/** `$${` is a literal `${`; otherwise `${NAME}`. */
const VARIABLE = /\$\$\{|\$\{([^{}]*)\}/g;
const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

export interface ExpandIssue {
  readonly kind: 'unset' | 'malformed';
  readonly name: string;
}

/**
 * Expands `${NAME}` in one string value of a file, after the file was parsed: what a variable holds
 * is text and nothing else (hard case H25). An unset or empty variable is reported, never skipped.
 */
export function expandText(
  text: string,
  { cwd, env }: { readonly cwd: string; readonly env: NodeJS.ProcessEnv },
  report: (issue: ExpandIssue) => void,
): string | SecretValue {
  const expand = (part: string): string =>
    part.replace(VARIABLE, (whole, name: string | undefined) => {
      if (name === undefined) return '${';
      if (!NAME.test(name)) {
        report({ kind: 'malformed', name: whole });
        return whole;
      }
      const value = env[name];
      if (value === undefined || value === '') {
        report({ kind: 'unset', name });
        return '';
      }
      return value;
    });
  const secret = parseSecret(text, cwd, expand);
  return secret === null ? expand(text) : new SecretValue(secret);
}
