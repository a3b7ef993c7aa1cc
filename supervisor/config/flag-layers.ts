import { resolve } from 'node:path';
import { type ExpandOptions, expandPlain, expandProblem, expandValue } from './expand.ts';
import type { ConfigProblems } from './problems.ts';
import { parseSecret } from './secret.ts';
import { SETTINGS, type Setting } from './settings.ts';
import { parseRoute, parseServer, ShorthandError, splitList } from './shorthand.ts';
import {
  isList,
  isMap,
  type Layer,
  SecretValue,
  setAt,
  type Tree,
  type TreeMap,
  type TreePath,
  UnknownValue,
} from './tree.ts';

/** The layers of the environment and of the command line. */

/** Flags as given: a switch is true, a repeatable flag a list. Keys are long flags, `--mode`. */
export type FlagValues = Readonly<Record<string, true | string | readonly string[]>>;

interface Given {
  readonly origin: string;
  readonly value: Tree;
}

/** What the environment says, to the letter: a `${NAME}` in it is text. An empty variable says nothing. */
export function environmentLayer(env: NodeJS.ProcessEnv, cwd: string, problems: ConfigProblems): Layer {
  return buildLayer('environment', problems, (setting) => {
    const name = setting.env?.find((candidate) => (env[candidate] ?? '') !== '');
    const text = name === undefined ? undefined : env[name];
    if (name === undefined || text === undefined) return null;
    // The variable itself is the secret: what is kept is its name.
    const value =
      setting.form === 'secret' && parseSecret(text, cwd) === null
        ? new SecretValue({ secret: 'env', name })
        : setting.form === 'secret-file'
          ? new SecretValue({ secret: 'file', path: resolve(cwd, text) })
          : shaped(setting, text, (part) => literalOrSecret(part, cwd));
    return { origin: name, value };
  });
}

/** What the command line says, each `${NAME}` expanded once a flag was taken apart, as in a file. */
export function flagLayer(flags: FlagValues, options: ExpandOptions, problems: ConfigProblems): Layer {
  return buildLayer('command line', problems, (setting) => {
    const flag = [setting.flag, ...(setting.aliases ?? [])].find(
      (candidate) => candidate !== undefined && flags[candidate] !== undefined,
    );
    const given = flag === undefined ? undefined : flags[flag];
    if (flag === undefined || given === undefined) return null;
    if (given === true) return { origin: flag, value: true };
    const read = (text: string): Tree => {
      if (setting.form === 'secret-file') return secretFile(text, flag, options, problems);
      return shaped(setting, text, (part) => expandValue(part, flag, options, problems));
    };
    return { origin: flag, value: typeof given === 'string' ? read(given) : given.map(read) };
  });
}

function buildLayer(name: string, problems: ConfigProblems, read: (setting: Setting) => Given | null): Layer {
  let tree: TreeMap = {};
  const origins = new Map<string, string>();
  for (const setting of SETTINGS) {
    try {
      const given = read(setting);
      if (given === null) continue;
      if (origins.has(setting.key)) {
        problems.add({
          code: 'USAGE',
          where: null,
          message: `${origins.get(setting.key)} and ${given.origin} both set ${setting.key}; give one of them`,
          remedy: `Leave out ${given.origin} or ${origins.get(setting.key)}.`,
        });
        problems.doubt(setting.key.split('.'));
      }
      tree = setAt(tree, setting.key.split('.'), given.value);
      origins.set(setting.key, given.origin);
    } catch (error) {
      if (!(error instanceof ShorthandError)) throw error;
      problems.add({ code: 'USAGE', where: setting.flag ?? null, message: error.message });
      problems.doubt(setting.key.split('.'));
    }
  }
  return { name, tree, locate: (path) => locate(origins, path) };
}

function locate(origins: ReadonlyMap<string, string>, path: TreePath): string | undefined {
  for (let depth = path.length; depth >= 1; depth -= 1) {
    const origin = origins.get(path.slice(0, depth).join('.'));
    if (origin !== undefined) return origin;
  }
  return undefined;
}

/** Takes one text apart; `read` makes the value of each part. */
function shaped({ form }: Setting, text: string, read: (part: string) => Tree): Tree {
  switch (form) {
    case 'csv':
      return splitList(text).map(read);
    case 'route':
      return eachText(parseRoute(text), read);
    case 'server':
      return eachText(parseServer(text), read);
    default:
      return read(text);
  }
}

function eachText(tree: Tree, read: (part: string) => Tree): Tree {
  if (typeof tree === 'string') return read(tree);
  if (isList(tree)) return tree.map((item) => eachText(item, read));
  if (!isMap(tree)) return tree;
  return Object.fromEntries(Object.entries(tree).map(([key, value]) => [key, eachText(value, read)]));
}

function secretFile(text: string, flag: string, options: ExpandOptions, problems: ConfigProblems): Tree {
  let wrong = false;
  const path = expandPlain(text, options.env, (issue) => {
    wrong = true;
    problems.add(expandProblem(issue, flag));
  });
  return wrong ? new UnknownValue() : new SecretValue({ secret: 'file', path: resolve(options.cwd, path) });
}

function literalOrSecret(text: string, cwd: string): Tree {
  const ref = parseSecret(text, cwd);
  return ref === null ? text : new SecretValue(ref);
}
