import { dotted, type SchemaIssue, schemaIssues } from './issues.ts';
import { type KnownPart, unknownPaths, withoutPaths } from './known-part.ts';
import { type ConfigProblems, overlap, type Problem } from './problems.ts';
import { type ConfigDocument, configSchema } from './schema.ts';
import { getAt, type TreeMap, type TreePath } from './tree.ts';

/** Each round leaves out at least one value; what needs more rounds is beyond use. */
const MAX_ROUNDS = 32;

export interface ReadDocument {
  readonly document: ConfigDocument;
  readonly written: KnownPart['written'];
}

export interface DocumentSource {
  readonly tree: TreeMap;
  /** Whether more is said that nobody could read: then what is missing may be there. */
  readonly partial: boolean;
  where(path: TreePath, part: SchemaIssue['part']): string | null;
}

/**
 * Holds the merged layers against the schema. Everything wrong is added to `problems`; what is left is
 * the document without it, so that the rules over several keys can be looked at too. Null when that
 * makes no sense.
 */
export function readDocument(source: DocumentSource, problems: ConfigProblems): ReadDocument | null {
  const { tree } = source;
  const gone = problems.empty ? [] : unknownPaths(tree);
  for (const path of gone) problems.doubt(path);
  const found: Problem[] = [];
  let document: ConfigDocument | null = null;
  let part = withoutPaths(tree, gone);
  for (let round = 0; document === null && round < MAX_ROUNDS; round += 1) {
    // Compiling a schema pays from the second document on; there is one.
    const parsed = configSchema.safeParse(part.tree, { jitless: true });
    if (parsed.success) {
      document = parsed.data;
      break;
    }
    const { written } = part;
    const before = [...gone];
    for (const issue of schemaIssues(parsed.error)) {
      const path = written(issue.path);
      const missing = getAt(tree, path) === undefined;
      // What is missing because it was left out, or may stand where nobody could read, is not missed.
      const follows = before.some((other) => overlap(other, path)) || (missing && source.partial);
      if (!follows) found.push(problemOf(issue, path, source));
      const left = getAt(part.tree, issue.path) === undefined ? path.slice(0, -1) : path;
      gone.push(left);
      problems.doubt(left);
      if (issue.meant !== null) problems.doubt(issue.meant);
    }
    part = withoutPaths(tree, gone);
  }
  for (const problem of inReadingOrder(found)) problems.add(problem);
  return document === null || source.partial ? null : { document, written: part.written };
}

function problemOf({ part, message }: SchemaIssue, path: TreePath, { where }: DocumentSource): Problem {
  const named = dotted(part === 'key' ? path.slice(0, -1) : path);
  return {
    code: 'CONFIG_INVALID',
    where: where(path, part),
    message: named === '' ? message : `${named}: ${message}`,
  };
}

function inReadingOrder(problems: readonly Problem[]): Problem[] {
  const order = new Intl.Collator('en', { numeric: true });
  return [...problems].sort((a, b) => order.compare(a.where ?? '', b.where ?? ''));
}
