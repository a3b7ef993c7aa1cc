import { type Check, dottedName, type SourceFile, type Syntax, walk } from './project.ts';

/** Every test has a title of its own over the whole tree, so that a report names exactly one. */
export const testTitles: Check = (files) => {
  const places = new Map<string, string[]>();
  for (const file of files.filter(({ path }) => path.endsWith('.test.ts'))) {
    for (const title of titlesOf(file)) places.set(title, [...(places.get(title) ?? []), file.path]);
  }
  return [...places]
    .filter(([, paths]) => paths.length > 1)
    .map(([title, paths]) => `${[...new Set(paths)].join(' and ')} both have the test "${title}"`);
};

function titlesOf({ tree, text }: SourceFile): string[] {
  const titles: string[] = [];
  walk(tree, (node, parents) => {
    if (blockOf(node) !== 'test') return;
    const outer = parents.filter((parent) => blockOf(parent) === 'describe');
    titles.push([...outer, node].map((block) => titleOf(block, text)).join(' > '));
  });
  return titles;
}

/** `it(…)`, `test.each(…)(…)`, `describe.skipIf(…)(…)` and the like; only the call that gives the title. */
function blockOf(node: Syntax): 'test' | 'describe' | null {
  if (node.type !== 'CallExpression') return null;
  const name = calleeName(node.callee);
  if (name === null || !hasTitle(node)) return null;
  if (/^(it|test)(\.|$)/.test(name)) return 'test';
  return /^describe(\.|$)/.test(name) ? 'describe' : null;
}

function calleeName(callee: unknown): string | null {
  const name = dottedName(callee);
  if (name !== null) return name;
  const inner = callee as Syntax;
  return inner.type === 'CallExpression' || inner.type === 'TaggedTemplateExpression'
    ? calleeName(inner.callee ?? inner.tag)
    : null;
}

/** A title and something to run; `it.each([…])` alone has neither. */
function hasTitle(node: Syntax): boolean {
  const [title, body] = node.arguments as readonly Syntax[];
  return (
    title !== undefined &&
    body !== undefined &&
    /^(Literal|TemplateLiteral|BinaryExpression)$/.test(title.type)
  );
}

function titleOf(node: Syntax, text: string): string {
  const [title] = node.arguments as readonly { readonly start: number; readonly end: number }[];
  return title === undefined ? '' : text.slice(title.start + 1, title.end - 1);
}
