import { AgentdError, type ErrorCode } from '../../protocol/errors.ts';

/** One thing that is wrong with a configuration. */
export interface Problem {
  readonly code: ErrorCode;
  /** Where it was written: `file:line:column`, a variable or a flag. */
  readonly where: string | null;
  readonly message: string;
  readonly remedy?: string;
}

/** Everything found wrong, so that a person corrects it in one go. */
export class ConfigProblems {
  private readonly found: Problem[] = [];

  add(problem: Problem): void {
    this.found.push(problem);
  }

  get empty(): boolean {
    return this.found.length === 0;
  }

  /** @throws AgentdError with the code of the first problem, naming all of them; exit 2 */
  throwIfAny(): void {
    const [first, ...rest] = this.found;
    if (first === undefined) return;
    const message = [first, ...rest].map(problemText).join('; ');
    const options = rest.length === 0 && first.remedy !== undefined ? { remedy: first.remedy } : {};
    throw new AgentdError(first.code, message, { ...options, exitCode: 2 });
  }
}

function problemText({ where, message }: Problem): string {
  return where === null ? message : `${where}: ${message}`;
}

/** A value as an error may quote it: one line, not long. */
export function quoted(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 80 ? `${text.slice(0, 77)}…` : text;
}
