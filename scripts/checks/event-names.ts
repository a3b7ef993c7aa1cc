import { EVENT_NAMES } from '../../protocol/event-line.ts';
import { type Check, dottedName, isProduct, literalText, walk } from './project.ts';

const METHOD = /(^|\.)\w*[lL]og\.(trace|debug|info|warn|error|write)$/;

/** Every event a log line is written with belongs to the vocabulary of the contract. */
export const eventNames: Check = (files) => {
  const vocabulary: readonly string[] = EVENT_NAMES;
  return files
    .filter(({ path }) => isProduct(path))
    .flatMap(({ path, tree }) => {
      const problems: string[] = [];
      walk(tree, (node) => {
        if (node.type !== 'CallExpression') return;
        const name = dottedName(node.callee);
        if (name === null || !METHOD.test(name)) return;
        const given = node.arguments as readonly unknown[];
        const event = literalText(name.endsWith('.write') ? given[1] : given[0]);
        if (event !== null && !vocabulary.includes(event)) {
          problems.push(`${path} logs ${JSON.stringify(event)}, which is not in the vocabulary`);
        }
      });
      return problems;
    });
};
