import { ERRORS, type ErrorEntry, type ErrorKind } from '../../protocol/errors.ts';
import { page } from './markdown.ts';

const KINDS: Readonly<Record<ErrorKind, string>> = {
  configuration: 'Fix the configuration or the command line: trying again changes nothing (exit 2).',
  retry: 'Try again later: the other side may be there by then.',
  permanent: 'Give up: the same call fails the same way.',
  lease: 'Somebody else owns the item: stop working on it.',
};

/** docs/errors.md. */
export function errorsPage(): string {
  const entries: readonly (readonly [string, ErrorEntry])[] = Object.entries(ERRORS);
  const groups = Object.entries(KINDS).flatMap(([kind, meaning]) => {
    const members = entries.filter(([, entry]) => entry.kind === kind);
    return members.length === 0 ? [] : [`## ${kind}`, meaning, ...members.map(entryText)];
  });
  return page(
    '# Errors',
    'Every error a person can meet has a code. The message says what could not be done and names the ' +
      'thing; the line under it says what to do next. Codes are stable within a major version. Which ' +
      'exit code a process ends with is in [exit codes](exit-codes.md).',
    ...groups,
  );
}

function entryText([code, { summary, remedy }]: readonly [string, ErrorEntry]): string {
  return `### ${code}\n\n${summary}\n\n*What to do:* ${remedy}`;
}
