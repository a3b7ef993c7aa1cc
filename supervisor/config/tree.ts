import type { SecretRef } from './secret.ts';

/** A configuration before validation: what one layer says, and how layers lie over each other. */

/** A reference found in a text. Wrapped, so that no mapping in a file can pass for one. */
export class SecretValue {
  constructor(readonly ref: SecretRef) {}
}

/** Stands where a text could not be expanded: something is said there, and nobody knows what. */
export class UnknownValue {}

export type Tree = string | number | boolean | null | SecretValue | UnknownValue | readonly Tree[] | TreeMap;
export interface TreeMap {
  readonly [key: string]: Tree;
}
export type TreePath = readonly (string | number)[];

/** One source of settings. */
export interface Layer {
  /** For people: a file name, `environment`, `command line`. */
  readonly name: string;
  readonly tree: TreeMap;
  /** Where a key was written: `file:line:column`, a variable or a flag. */
  locate(path: TreePath, part: 'key' | 'value'): string | undefined;
}

export function isMap(tree: Tree | undefined): tree is TreeMap {
  if (typeof tree !== 'object' || tree === null || isList(tree)) return false;
  return !(tree instanceof SecretValue) && !(tree instanceof UnknownValue);
}

export function isList(tree: Tree | undefined): tree is readonly Tree[] {
  return Array.isArray(tree);
}

/** Puts `over` on `under`: mappings merge key by key, everything else replaces what is under it. */
export function mergeTrees(under: TreeMap, over: TreeMap): TreeMap {
  const merged = new Map(Object.entries(under));
  for (const [key, value] of Object.entries(over)) {
    const below = merged.get(key);
    merged.set(key, isMap(below) && isMap(value) ? mergeTrees(below, value) : value);
  }
  return Object.fromEntries(merged);
}

/** A copy of `tree` with `value` at `path`; mappings on the way are made as needed. */
export function setAt(tree: TreeMap, [head, ...rest]: readonly string[], value: Tree): TreeMap {
  if (head === undefined) return tree;
  const below = tree[head];
  return { ...tree, [head]: rest.length === 0 ? value : setAt(isMap(below) ? below : {}, rest, value) };
}

export function getAt(tree: Tree | undefined, path: TreePath): Tree | undefined {
  let here = tree;
  for (const step of path) {
    if (isList(here)) here = here[Number(step)];
    else if (isMap(here) && Object.hasOwn(here, String(step))) here = here[String(step)];
    else return undefined;
  }
  return here;
}

/**
 * The layer that decides the value at `path`, and its index in `layers` (lowest first). A list comes
 * from one layer as a whole.
 */
export function ownerOf(
  layers: readonly Layer[],
  path: TreePath,
): { readonly layer: Layer; readonly rank: number } | null {
  for (let depth = path.length; depth >= 1; depth -= 1) {
    // From the outermost list on, only the layer that brought the list counts.
    for (let rank = layers.length - 1; rank >= 0; rank -= 1) {
      const layer = layers[rank];
      if (layer === undefined) continue;
      if (getAt(layer.tree, path.slice(0, depth)) !== undefined) return { layer, rank };
      if (bringsList(layer, path.slice(0, depth))) break;
    }
  }
  return null;
}

function bringsList(layer: Layer, path: TreePath): boolean {
  return path.some((step, at) => typeof step === 'number' && isList(getAt(layer.tree, path.slice(0, at))));
}

/** Drops keys without a value, so that `limits:` with nothing under it means nothing was said. */
export function withoutNulls(tree: TreeMap): TreeMap {
  const entries = Object.entries(tree).filter(([, value]) => value !== null);
  return Object.fromEntries(
    // A JSON Schema may hold a null that means null.
    entries.map(([key, value]) => [key, key === 'output_contract' ? value : prune(value)]),
  );
}

function prune(tree: Tree): Tree {
  if (isList(tree)) return tree.map(prune);
  return isMap(tree) ? withoutNulls(tree) : tree;
}
