import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  getAt,
  isMap,
  type Layer,
  mergeTrees,
  ownerOf,
  setAt,
  type Tree,
  type TreeMap,
  withoutNulls,
} from '../../../supervisor/config/tree.ts';

const KEYS = ['a', 'b', 'c', '__proto__', 'constructor'];

const { map } = fc.letrec<{ tree: Tree; map: TreeMap }>((tie) => ({
  tree: fc.oneof(
    { depthSize: 'small' },
    fc.string(),
    fc.integer(),
    fc.boolean(),
    fc.array(fc.integer(), { maxLength: 3 }),
    tie('map'),
  ),
  map: fc
    .array(fc.tuple(fc.constantFrom(...KEYS), tie('tree')), { maxLength: 4 })
    .map((entries) => Object.fromEntries(entries)),
}));

/** Every path at which something other than a mapping stands. */
function leaves(tree: TreeMap, prefix: string[] = []): { path: string[]; value: Tree }[] {
  return Object.keys(tree).flatMap((key) => {
    const value = getAt(tree, [key]) ?? null;
    return isMap(value) ? leaves(value, [...prefix, key]) : [{ path: [...prefix, key], value }];
  });
}

function layer(name: string, tree: TreeMap): Layer {
  return { name, tree, locate: () => name };
}

describe('laying trees over each other', () => {
  it('keeps every value of the upper tree', () => {
    fc.assert(
      fc.property(map, map, (under, over) => {
        const merged = mergeTrees(under, over);
        for (const { path, value } of leaves(over)) expect(getAt(merged, path)).toEqual(value);
      }),
    );
  });

  it('keeps a lower value unless the upper tree says something at it, above it or below it', () => {
    fc.assert(
      fc.property(map, map, (under, over) => {
        const merged = mergeTrees(under, over);
        for (const { path, value } of leaves(under)) {
          const above = path.some((_, depth) => {
            const there = getAt(over, path.slice(0, depth + 1));
            return there !== undefined && (depth + 1 === path.length || !isMap(there));
          });
          if (!above) expect(getAt(merged, path)).toEqual(value);
        }
      }),
    );
  });

  it('invents nothing', () => {
    fc.assert(
      fc.property(map, map, (under, over) => {
        for (const { path, value } of leaves(mergeTrees(under, over))) {
          const candidates = [getAt(over, path), getAt(under, path)].filter((found) => found !== undefined);
          expect(candidates).toContainEqual(value);
        }
      }),
    );
  });

  it('has the empty tree as its neutral element, and gives the same in any grouping of mappings alone', () => {
    fc.assert(
      fc.property(map, (tree) => {
        expect(mergeTrees({}, tree)).toEqual(tree);
        expect(mergeTrees(tree, {})).toEqual(tree);
        expect(mergeTrees(tree, tree)).toEqual(tree);
      }),
    );
  });

  it('replaces a list as a whole', () => {
    expect(mergeTrees({ a: { list: [1, 2, 3], kept: 1 } }, { a: { list: [9] } })).toEqual({
      a: { list: [9], kept: 1 },
    });
  });

  it('never touches the prototype of anything', () => {
    const hostile: unknown = JSON.parse('{"__proto__": {"polluted": true}}');
    const merged = mergeTrees({}, hostile as TreeMap);
    expect(Object.hasOwn(merged, '__proto__')).toBe(true);
    expect(Object.getPrototypeOf(setAt({}, ['__proto__', 'polluted'], true))).toBe(Object.prototype);
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });
});

describe('the layer that decides a value', () => {
  it('is the highest that sets it', () => {
    fc.assert(
      fc.property(fc.array(map, { minLength: 1, maxLength: 4 }), (trees) => {
        const layers = trees.map((tree, at) => layer(String(at), tree));
        const merged = trees.reduce<TreeMap>((under, tree) => mergeTrees(under, tree), {});
        for (const { path, value } of leaves(merged)) {
          const owner = ownerOf(layers, path);
          expect(owner === null ? undefined : getAt(owner.layer.tree, path)).toEqual(value);
        }
      }),
    );
  });

  it('is the one that brought the list, also for what its items lack', () => {
    const layers = [
      layer('low', { routes: [{ match: 'x', extra: 1 }] }),
      layer('high', { routes: [{ match: 'y' }] }),
    ];
    expect(ownerOf(layers, ['routes', 0, 'extra'])?.layer.name).toBe('high');
  });

  it('is nobody for what nobody says', () => {
    expect(ownerOf([layer('only', { a: 1 })], ['b'])).toBeNull();
  });
});

describe('keys without a value', () => {
  it('say nothing, except inside a JSON Schema', () => {
    expect(
      withoutNulls({
        limits: null,
        agent: { name: null, output_contract: { const: null } },
        list: [{ a: null }],
      }),
    ).toEqual({ agent: { output_contract: { const: null } }, list: [{}] });
  });
});
