import { basename } from 'node:path';
import { type Check, dottedName, isProduct, walk } from './project.ts';

/** The house plan: who may import whom, who owns the process, how long a file may be. */

const MAX_LINES = 300;
const MAINS = ['supervisor/main.ts', 'child/main.ts'];

/** Folder of the importing file, and what it must not reach. */
const FORBIDDEN: readonly (readonly [RegExp, RegExp, string])[] = [
  [/^child\//, /^supervisor\//, 'child/ never imports supervisor/'],
  [/^supervisor\//, /^child\//, 'supervisor/ never imports child/'],
  [/^protocol\//, /^(child|supervisor)\//, 'protocol/ imports neither side'],
  [
    /^(protocol|child|supervisor)\//,
    /^(scripts|test|examples)\//,
    'the product imports no scripts and no tests',
  ],
];

export const importRules: Check = (files) =>
  files.flatMap(({ path, imports }) =>
    imports.flatMap(({ target, local, raw }) => {
      const broken = FORBIDDEN.filter(([from, to]) => local && from.test(path) && to.test(target));
      const problems = broken.map(([, , rule]) => `${path} imports ${raw}: ${rule}`);
      if (local && !/\.(ts|json|yaml)$/.test(raw))
        problems.push(`${path} imports ${raw} without its extension`);
      return problems;
    }),
  );

export const fileRules: Check = (files) =>
  files.flatMap(({ path, text }) => {
    const problems: string[] = [];
    const lines = text.split('\n').length - 1;
    if (lines > MAX_LINES) problems.push(`${path} has ${lines} lines; the cap is ${MAX_LINES}`);
    if (basename(path) === 'index.ts') problems.push(`${path} is a barrel; name the file after what it does`);
    if (/(^|\/)(utils?|helpers|misc|common)(\.ts$|\/)/.test(path) && isProduct(path)) {
      problems.push(`${path} is named after nothing it does`);
    }
    return problems;
  });

const PROCESS_CALLS = /^process\.(on|once|addListener|prependListener|exit|abort|reallyExit)$/;

export const processRules: Check = (files) =>
  files
    .filter(({ path }) => isProduct(path) && !MAINS.includes(path))
    .flatMap(({ path, tree }) => {
      const problems: string[] = [];
      walk(tree, (node) => {
        const name = node.type === 'MemberExpression' ? dottedName(node) : null;
        if (name !== null && PROCESS_CALLS.test(name)) {
          problems.push(`${path} uses ${name}; only ${MAINS.join(' and ')} own the process`);
        }
      });
      return problems;
    });
