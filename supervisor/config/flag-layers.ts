import { resolve } from 'node:path';
import type { ConfigProblems } from './problems.ts';
import { parseSecret, type SecretRef } from './secret.ts';
import { SETTINGS, type Setting } from './settings.ts';
import { parseRoute, parseServer, ShorthandError, splitList } from './shorthand.ts';
import { type Layer, SecretValue, setAt, type Tree, type TreeMap, type TreePath } from './tree.ts';

/** The layers of the environment and of the command line. */

/** Flags as given: a switch is true, a repeatable flag a list. Keys are long flags, `--mode`. */
export type FlagValues = Readonly<Record<string, true | string | readonly string[]>>;

interface Given {
  readonly origin: string;
  readonly value: Tree;
}

/** What the environment says. An empty variable says nothing. */
export function environmentLayer(env: NodeJS.ProcessEnv, cwd: string, problems: ConfigProblems): Layer {
  return buildLayer('environment', problems, (setting) => {
    const name = setting.env?.find((candidate) => (env[candidate] ?? '') !== '');
    const text = name === undefined ? undefined : env[name];
    if (name === undefined || text === undefined) return null;
    // The variable itself is the secret: what is kept is its name.
    const value =
      setting.form === 'secret' && parseSecret(text, cwd) === null
        ? new SecretValue({ secret: 'env', name })
        : formed(setting, text, cwd);
    return { origin: name, value };
  });
}

/** What the command line says. */
export function flagLayer(flags: FlagValues, cwd: string, problems: ConfigProblems): Layer {
  return buildLayer('command line', problems, (setting) => {
    const flag = [setting.flag, ...(setting.aliases ?? [])].find(
      (candidate) => candidate !== undefined && flags[candidate] !== undefined,
    );
    const given = flag === undefined ? undefined : flags[flag];
    if (flag === undefined || given === undefined) return null;
    if (given === true) return { origin: flag, value: true };
    const value =
      typeof given === 'string'
        ? formed(setting, given, cwd)
        : given.map((text) => formed(setting, text, cwd));
    return { origin: flag, value };
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
        });
      }
      tree = setAt(tree, setting.key.split('.'), given.value);
      origins.set(setting.key, given.origin);
    } catch (error) {
      if (!(error instanceof ShorthandError)) throw error;
      problems.add({ code: 'USAGE', where: setting.flag ?? null, message: error.message });
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

function formed(setting: Setting, text: string, cwd: string): Tree {
  switch (setting.form) {
    case 'csv':
      return splitList(text);
    case 'route':
      return parseRoute(text);
    case 'server':
      return parseServer(text);
    case 'secret-file':
      return new SecretValue({ secret: 'file', path: resolve(cwd, text) });
    default:
      return literalOrSecret(text, cwd);
  }
}

function literalOrSecret(text: string, cwd: string): Tree {
  const ref: SecretRef | null = parseSecret(text, cwd);
  return ref === null ? text : new SecretValue(ref);
}
