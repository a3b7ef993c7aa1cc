import { readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { code, page, table } from './markdown.ts';

/** One row of a machine's table, as its module exports it. */
interface Transition {
  readonly state: string;
  readonly event: string;
  readonly next: string;
  readonly effects: readonly string[] | string;
  readonly note?: string;
}

/** docs/states.md: every table a source file exports as `TRANSITIONS` or `SOMETHING_TRANSITIONS`. */
export async function statesPage(root: string, files: readonly string[]): Promise<string> {
  const sections: string[] = [];
  for (const file of [...files].sort()) {
    const source = await readFile(join(root, file), 'utf8');
    if (!/export const ([A-Z]+_)*TRANSITIONS\b/.test(source)) continue;
    const module: Readonly<Record<string, unknown>> = await import(join(root, file));
    for (const [name, value] of Object.entries(module)) {
      if (/^([A-Z]+_)*TRANSITIONS$/.test(name) && isTable(value)) sections.push(section(file, source, value));
    }
  }
  return page(
    '# States',
    'Every decision with more than two outcomes is a pure machine: a state and an event give the next ' +
      'state and effects, and the reactor applies the effects. These are their tables. An event that is ' +
      'not listed for a state changes nothing in it.',
    ...sections,
  );
}

function section(file: string, source: string, rows: readonly Transition[]): string {
  const title = basename(file, '.ts')
    .replace(/-machine$/, '')
    .replaceAll('-', ' ');
  return [
    `## ${title.charAt(0).toUpperCase()}${title.slice(1)}`,
    `[${file}](../${file})`,
    summary(source),
    table(
      ['state', 'event', 'next state', 'effects', 'why'],
      rows.map(({ state, event, next, effects, note }) => [
        code(state),
        code(event),
        next === state ? '' : code(next),
        [effects].flat().map(code).join(', '),
        note ?? '',
      ]),
    ),
  ]
    .filter((part) => part !== '')
    .join('\n\n');
}

/** The comment a file opens with. */
function summary(source: string): string {
  const found = /^(?:import [^;]+;\s*)*\/\*\*([\s\S]*?)\*\//.exec(source);
  return (found?.[1] ?? '')
    .split('\n')
    .map((line) => line.replace(/^\s*\* ?/, '').trimEnd())
    .join('\n')
    .trim();
}

function isTable(value: unknown): value is readonly Transition[] {
  return (
    Array.isArray(value) &&
    value.length > 0 &&
    value.every(
      (row: unknown) =>
        typeof row === 'object' &&
        row !== null &&
        'state' in row &&
        'event' in row &&
        'next' in row &&
        'effects' in row,
    )
  );
}
