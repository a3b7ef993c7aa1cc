import { readFile } from 'node:fs/promises';
import { dirname, join, normalize } from 'node:path';
import { parseSync } from 'vite';
import { sourceFiles } from './source-files.ts';

/** The source tree as the checks see it: every file with its syntax tree. */

/** A node of an ESTree syntax tree. */
export interface Syntax {
  readonly type: string;
  readonly [key: string]: unknown;
}

export interface SourceFile {
  /** From the root of the project. */
  readonly path: string;
  readonly text: string;
  readonly tree: Syntax;
  readonly imports: readonly Import[];
  readonly comments: readonly string[];
}

export interface Import {
  /** Path from the root for a file of the project, otherwise the name of the module. */
  readonly target: string;
  readonly local: boolean;
  /** Erased before it runs. */
  readonly typeOnly: boolean;
  /** Loaded when reached, not at the start. */
  readonly lazy: boolean;
  readonly raw: string;
}

/** A check returns what is wrong, one sentence each, beginning with the file. */
export type Check = (files: readonly SourceFile[]) => string[];

export async function readProject(root: string): Promise<SourceFile[]> {
  return Promise.all(
    (await sourceFiles(root)).map(async (path) => {
      const text = await readFile(join(root, path), 'utf8');
      return parseSource(path, text);
    }),
  );
}

export function parseSource(path: string, text: string): SourceFile {
  const { program, errors, comments } = parseSync(path, text);
  const [first] = errors;
  if (first !== undefined) throw new Error(`${path}: ${first.message}`);
  const tree = program as unknown as Syntax;
  return { path, text, tree, imports: importsOf(path, tree), comments: comments.map(({ value }) => value) };
}

function importsOf(path: string, tree: Syntax): Import[] {
  const imports: Import[] = [];
  walk(tree, (node) => {
    const source = node.source as Syntax | null | undefined;
    const raw = typeof source?.value === 'string' ? source.value : undefined;
    if (raw === undefined) return;
    const kind = node.importKind ?? node.exportKind;
    switch (node.type) {
      case 'ImportDeclaration':
      case 'ExportNamedDeclaration':
      case 'ExportAllDeclaration':
        imports.push({ ...resolveImport(path, raw), typeOnly: kind === 'type', lazy: false, raw });
        break;
      case 'ImportExpression':
        imports.push({ ...resolveImport(path, raw), typeOnly: false, lazy: true, raw });
        break;
      case 'TSImportType':
        imports.push({ ...resolveImport(path, raw), typeOnly: true, lazy: false, raw });
        break;
    }
  });
  return imports;
}

function resolveImport(path: string, raw: string): Pick<Import, 'target' | 'local'> {
  const local = raw.startsWith('.');
  return { target: local ? normalize(join(dirname(path), raw)) : raw, local };
}

/** Visits every node, parents first. The visitor may return false to stay out of a node's inside. */
export function walk(
  node: Syntax,
  visit: (node: Syntax, parents: readonly Syntax[]) => void,
  parents: readonly Syntax[] = [],
): void {
  visit(node, parents);
  const inside = [...parents, node];
  for (const value of Object.values(node)) {
    for (const child of Array.isArray(value) ? value : [value]) {
      if (isSyntax(child)) walk(child, visit, inside);
    }
  }
}

function isSyntax(value: unknown): value is Syntax {
  return typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string';
}

/** The text of a string literal or of a template without expressions; null for anything else. */
export function literalText(node: unknown): string | null {
  if (!isSyntax(node)) return null;
  if (node.type === 'Literal') return typeof node.value === 'string' ? node.value : null;
  if (node.type !== 'TemplateLiteral') return null;
  const quasis = node.quasis as readonly { readonly value: { readonly raw: string } }[];
  return quasis.length === 1 ? (quasis[0]?.value.raw ?? null) : null;
}

/** The dotted name of an expression such as `process.on`; null when it is not just names. */
export function dottedName(node: unknown): string | null {
  if (!isSyntax(node)) return null;
  if (node.type === 'Identifier') return String(node.name);
  if (node.type === 'ThisExpression') return 'this';
  if (node.type !== 'MemberExpression' || node.computed === true) return null;
  const object = dottedName(node.object);
  const property = dottedName(node.property);
  return object === null || property === null ? null : `${object}.${property}`;
}

export function isProduct(path: string): boolean {
  return /^(protocol|child|supervisor)\//.test(path);
}
