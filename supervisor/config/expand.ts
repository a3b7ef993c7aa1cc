import { AgentdError } from '../../protocol/errors.ts';
import type { ConfigProblems, Problem } from './problems.ts';
import { parseSecret } from './secret.ts';
import { SecretValue, UnknownValue } from './tree.ts';

/** `$${` is a literal `${`; otherwise `${NAME}`. */
const VARIABLE = /\$\$\{|\$\{([^{}]*)\}/g;
const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

export interface ExpandIssue {
  readonly kind: 'unset' | 'malformed';
  readonly name: string;
}

export interface ExpandOptions {
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
}

/**
 * Expands `${NAME}` in one string value of a file or of a flag, after the file or the flag was parsed:
 * what a variable holds is text and nothing else (hard case H25). An unset or empty variable is
 * reported, never skipped.
 */
export function expandText(
  text: string,
  { cwd, env }: ExpandOptions,
  report: (issue: ExpandIssue) => void,
): string | SecretValue {
  const expand = (part: string): string => expandPlain(part, env, report);
  const secret = parseSecret(text, cwd, expand);
  return secret === null ? expand(text) : new SecretValue(secret);
}

/** The same where a secret reference has no meaning. */
export function expandPlain(
  text: string,
  env: NodeJS.ProcessEnv,
  report: (issue: ExpandIssue) => void,
): string {
  return text.replace(VARIABLE, (whole, name: string | undefined) => {
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
}

/** Expands a value; what is wrong with it is added to `problems`, and the value is then unknown. */
export function expandValue(
  text: string,
  where: string,
  options: ExpandOptions,
  problems: ConfigProblems,
): string | SecretValue | UnknownValue {
  let wrong = false;
  const value = expandText(text, options, (issue) => {
    wrong = true;
    problems.add(expandProblem(issue, where));
  });
  return wrong ? new UnknownValue() : value;
}

/**
 * Expands a value that is taken on its own, outside a configuration.
 *
 * @param where the flag or argument
 * @throws AgentdError CONFIG_UNSET_VARIABLE or CONFIG_INVALID, exit 2
 */
export function expandOrRefuse(text: string, where: string, env: NodeJS.ProcessEnv): string {
  return expandPlain(text, env, (issue) => {
    const { code, message, remedy } = expandProblem(issue, where);
    throw new AgentdError(code, `${where}: ${message}`, remedy === undefined ? {} : { remedy });
  });
}

/** What is wrong with a reference, for people. */
export function expandProblem({ kind, name }: ExpandIssue, where: string): Problem {
  if (kind === 'unset') {
    return {
      code: 'CONFIG_UNSET_VARIABLE',
      where,
      message: `the environment variable ${name} is not set`,
      remedy: `Set ${name}, or write $\${${name}} for the literal text.`,
    };
  }
  return {
    code: 'CONFIG_INVALID',
    where,
    message: `${name} does not name an environment variable`,
    remedy: 'Write ${NAME} with letters, digits and _, or $${ for a literal ${.',
  };
}
