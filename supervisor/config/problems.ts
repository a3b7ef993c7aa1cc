import { AgentdError, type ErrorCode } from '../../protocol/errors.ts';
import type { TreePath } from './tree.ts';

/** One thing that is wrong with a configuration. */
export interface Problem {
  readonly code: ErrorCode;
  /** Where it was written: `file:line:column`, a variable or a flag. */
  readonly where: string | null;
  readonly message: string;
  readonly remedy?: string;
}

/** A path in which `*` stands for any step. */
export type PathPattern = TreePath;

/**
 * Everything found wrong, so that a person corrects it in one go; and what nobody can know because of
 * it, so that nothing is said that a correction would make untrue.
 */
export class ConfigProblems {
  private readonly found: Problem[] = [];
  private readonly doubts: PathPattern[] = [];

  add(problem: Problem): void {
    this.found.push(problem);
  }

  get empty(): boolean {
    return this.found.length === 0;
  }

  /** What is wanted at `path` is not known. */
  doubt(path: PathPattern): void {
    this.doubts.push(path);
  }

  /** Whether everything at and under `path`, and what it is part of, is what was wanted. */
  isKnown(path: PathPattern): boolean {
    return !this.doubts.some((doubt) => overlap(doubt, path));
  }

  /** @throws AgentdError with the code of the first problem, naming all of them; exit 2 */
  throwIfAny(): void {
    const [first, ...rest] = this.found;
    if (first === undefined) return;
    const all = [first, ...rest];
    const message = [...new Set(all.map(problemText))].join('; ');
    const remedies = [...new Set(all.flatMap(({ remedy }) => remedy ?? []))];
    const options = remedies.length === 0 ? {} : { remedy: remedies.join(' ') };
    throw new AgentdError(first.code, message, { ...options, exitCode: 2 });
  }
}

/** Whether one path is the other or leads to it. */
export function overlap(a: PathPattern, b: PathPattern): boolean {
  const length = Math.min(a.length, b.length);
  for (let at = 0; at < length; at += 1) {
    if (a[at] !== b[at] && a[at] !== '*' && b[at] !== '*') return false;
  }
  return true;
}

function problemText({ where, message }: Problem): string {
  return where === null ? message : `${where}: ${message}`;
}

/** A value as an error may quote it: one line, not long, and nothing of what a map or a list holds (invariant 9). */
export function quoted(value: unknown): string {
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object' && value !== null) return 'a map';
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 80 ? `${text.slice(0, 77)}…` : text;
}
