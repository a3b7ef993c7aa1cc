import { ERRORS } from '../../protocol/errors.ts';
import { type Check, dottedName, isProduct, literalText, type SourceFile, walk } from './project.ts';

/** The table of errors, the code that raises them and their page agree, both ways. */

const TABLE = 'protocol/errors.ts';

export const errorCodes: Check = (files) => {
  const product = files.filter(({ path }) => isProduct(path) && path !== TABLE);
  const used = new Set(product.flatMap(stringsOf));
  const unused = Object.keys(ERRORS).filter((code) => !used.has(code));
  return [
    ...unused.map((code) => `${TABLE} lists ${code}, which nothing raises`),
    ...product.flatMap((file) =>
      raised(file)
        .filter((code) => !Object.hasOwn(ERRORS, code))
        .map((code) => `${file.path} raises ${code}, which ${TABLE} does not list`),
    ),
  ];
};

/** Codes that have no entry in docs/errors.md, and entries that have no code. */
export function errorDocs(page: string): string[] {
  const documented = [...page.matchAll(/^### (\S+)$/gm)].map(([, code = '']) => code);
  const codes = Object.keys(ERRORS);
  return [
    ...codes
      .filter((code) => !documented.includes(code))
      .map((code) => `docs/errors.md has no entry for ${code}`),
    ...documented
      .filter((code) => !codes.includes(code))
      .map((code) => `docs/errors.md explains ${code}, which does not exist`),
  ];
}

function stringsOf({ tree }: SourceFile): string[] {
  const strings: string[] = [];
  walk(tree, (node) => {
    const text = literalText(node);
    if (text !== null) strings.push(text);
  });
  return strings;
}

function raised({ tree }: SourceFile): string[] {
  const codes: string[] = [];
  walk(tree, (node) => {
    if (node.type !== 'NewExpression' || dottedName(node.callee) !== 'AgentdError') return;
    const [first] = node.arguments as readonly unknown[];
    const code = literalText(first);
    if (code !== null) codes.push(code);
  });
  return codes;
}
