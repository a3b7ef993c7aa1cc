import { type Check, dottedName, walk } from './project.ts';

/** Work that is promised instead of done, and tests that are switched off or crowd out the others. */

const PROMISE = /\b(TODO|FIXME|XXX|HACK)\b|@ts-(ignore|nocheck|expect-error)/;

export const openPromises: Check = (files) =>
  files.flatMap(({ path, comments }) =>
    comments
      .filter((comment) => PROMISE.test(comment))
      .map((comment) => `${path} has the comment "${comment.trim().split('\n')[0]}"`),
  );

export const switchedTests: Check = (files) =>
  files
    .filter(({ path }) => path.endsWith('.test.ts'))
    .flatMap(({ path, tree }) => {
      const problems: string[] = [];
      walk(tree, (node) => {
        const name = node.type === 'CallExpression' ? dottedName(node.callee) : null;
        if (name !== null && /^(it|test|describe)\.(only|skip|todo|fails)\b/.test(name)) {
          problems.push(`${path} uses ${name}`);
        }
      });
      return problems;
    });
