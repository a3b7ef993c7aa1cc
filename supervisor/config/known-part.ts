import { isList, isMap, type Tree, type TreeMap, type TreePath, UnknownValue } from './tree.ts';

/** A configuration without what is not known of it. */
export interface KnownPart {
  readonly tree: TreeMap;
  /** The path in the whole of a path in the part: items of a list move up where others were left out. */
  written(path: TreePath): TreePath;
}

/** Where texts could not be expanded. */
export function unknownPaths(tree: Tree, path: TreePath = []): TreePath[] {
  if (tree instanceof UnknownValue) return [path];
  if (isList(tree)) return tree.flatMap((item, at) => unknownPaths(item, [...path, at]));
  if (!isMap(tree)) return [];
  return Object.entries(tree).flatMap(([key, value]) => unknownPaths(value, [...path, key]));
}

/** Leaves out everything at and under the paths. */
export function withoutPaths(tree: TreeMap, paths: readonly TreePath[]): KnownPart {
  if (paths.length === 0) return { tree, written: (path) => path };
  const gone = new Set(paths.map(keyOf));
  const kept = new Map<string, readonly number[]>();
  const copy = (value: Tree, path: TreePath): Tree => {
    if (isList(value)) {
      const indexes = [...value.keys()].filter((at) => !gone.has(keyOf([...path, at])));
      kept.set(keyOf(path), indexes);
      return indexes.map((at) => copy(value[at] ?? null, [...path, at]));
    }
    return isMap(value) ? copyMap(value, path) : value;
  };
  const copyMap = (map: TreeMap, path: TreePath): TreeMap =>
    Object.fromEntries(
      Object.entries(map)
        .filter(([key]) => !gone.has(keyOf([...path, key])))
        .map(([key, value]) => [key, copy(value, [...path, key])]),
    );
  return {
    tree: copyMap(tree, []),
    written: (path) => {
      const whole: (string | number)[] = [];
      for (const step of path) {
        whole.push(typeof step === 'number' ? (kept.get(keyOf(whole))?.[step] ?? step) : step);
      }
      return whole;
    },
  };
}

function keyOf(path: TreePath): string {
  return JSON.stringify(path);
}
