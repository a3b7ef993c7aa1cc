import type { z } from 'zod';
import { allKeys, keysAt } from './schema-walk.ts';
import { nearest } from './suggest.ts';
import type { TreePath } from './tree.ts';

/** One complaint of the schema, in words. */
export interface SchemaIssue {
  readonly path: TreePath;
  /** Which part of the entry at `path` is wrong. */
  readonly part: 'key' | 'value';
  readonly message: string;
  /** The key that an unknown one was most likely meant to be. */
  readonly meant: TreePath | null;
}

/** Turns what zod found into sentences, one for each key that is wrong. */
export function schemaIssues(error: z.core.$ZodError, path: TreePath = []): SchemaIssue[] {
  return error.issues.flatMap((issue) => issuesOf(issue, path));
}

function issuesOf(issue: z.core.$ZodIssue, prefix: TreePath): SchemaIssue[] {
  const path = [...prefix, ...issue.path.map((step) => (typeof step === 'symbol' ? String(step) : step))];
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => unknownKey(path, key));
  }
  if (issue.code === 'invalid_union') {
    // The alternative that got past the outer shape says more than "none of these".
    const closest = issue.errors.find((branch) => branch.every(isInside));
    if (closest !== undefined && closest.length > 0) return closest.flatMap((inner) => issuesOf(inner, path));
  }
  return [{ path, part: 'value', message: issue.message, meant: null }];
}

function isInside(issue: z.core.$ZodIssue): boolean {
  return issue.path.length > 0 || issue.code === 'unrecognized_keys';
}

function unknownKey(path: TreePath, key: string): SchemaIssue {
  const siblings = keysAt(path);
  const sibling = nearest(key, siblings);
  const near = sibling ?? elsewhere(key);
  const hint = near === null ? `; allowed here: ${siblings.join(', ')}` : ` (did you mean ${near}?)`;
  return {
    path: [...path, key],
    part: 'key',
    message: `unknown key ${JSON.stringify(key)}${hint}`,
    meant: sibling === null ? (near?.replace(/\[\].*/, '').split('.') ?? null) : [...path, sibling],
  };
}

/** The full path of a key that exists, only not here. */
function elsewhere(key: string): string | null {
  return allKeys().find(({ path }) => path.split('.').at(-1) === key)?.path ?? null;
}

/** `mcp.servers[0].name`. */
export function dotted(path: TreePath): string {
  return path.reduce<string>(
    (text, step) => (typeof step === 'number' ? `${text}[${step}]` : text === '' ? step : `${text}.${step}`),
    '',
  );
}
