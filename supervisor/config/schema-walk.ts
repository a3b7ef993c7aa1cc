import type { z } from 'zod';
import { configSchema } from './schema.ts';

/** Questions about the schema itself: which keys it allows where. */

type Schema = z.core.$ZodType;

/** The keys a mapping at `path` allows; empty when nothing closed is there. */
export function keysAt(path: readonly (string | number)[]): string[] {
  let here: Schema | undefined = configSchema;
  for (const step of path) {
    if (here === undefined) return [];
    here = typeof step === 'number' ? elementOf(here) : shapeOf(here)?.[step];
  }
  return here === undefined ? [] : Object.keys(shapeOf(here) ?? {});
}

/** A key of the configuration and what stands in the schema for it. */
export interface SchemaKey {
  /** Dotted, `[]` after a list: `routes[].match`. */
  readonly path: string;
  readonly schema: Schema;
}

/** Every key, mappings before what is in them. */
export function allKeys(schema: Schema = configSchema, prefix = ''): SchemaKey[] {
  const shape = shapeOf(schema);
  if (shape === null) {
    const element = elementOf(schema);
    return element === undefined ? [] : allKeys(element, `${prefix.slice(0, -1)}[].`);
  }
  return Object.entries(shape).flatMap(([key, inner]) => [
    { path: `${prefix}${key}`, schema: inner },
    ...allKeys(inner, `${prefix}${key}.`),
  ]);
}

/** What the schema says of each key, by dotted key. */
export function keyDescriptions(): ReadonlyMap<string, string> {
  return new Map(allKeys().map(({ path, schema }) => [path, describe(schema)]));
}

/** The description of a key, wherever it stands under defaults and transforms. */
export function describe(schema: Schema): string {
  const own = (schema as z.ZodType).description;
  if (own !== undefined) return own;
  const { def } = (schema as z.core.$ZodTypes)._zod;
  if ('innerType' in def) return describe(def.innerType);
  return def.type === 'pipe' ? describe(def.in) : '';
}

/** The schema without defaults, optionality and transforms. */
export function unwrap(schema: Schema): Schema {
  const def = (schema as z.core.$ZodTypes)._zod.def;
  switch (def.type) {
    case 'optional':
    case 'default':
    case 'prefault':
    case 'nullable':
    case 'readonly':
      return unwrap(def.innerType);
    case 'pipe':
      return unwrap(def.in);
    default:
      return schema;
  }
}

/** The shape of a mapping, or of the one alternative that is a mapping. */
export function shapeOf(schema: Schema): Readonly<Record<string, Schema>> | null {
  const def = (unwrap(schema) as z.core.$ZodTypes)._zod.def;
  if (def.type === 'object') return def.shape;
  if (def.type !== 'union') return null;
  const shapes = def.options.map(shapeOf).filter((shape) => shape !== null);
  return shapes.length === 0 ? null : Object.assign({}, ...shapes);
}

/** The values of a closed set of words; null for everything else. */
export function wordsOf(schema: Schema): readonly string[] | null {
  const def = (unwrap(schema) as z.core.$ZodTypes)._zod.def;
  return def.type === 'enum' ? Object.values(def.entries).map(String) : null;
}

/** The element of a list. */
export function elementOf(schema: Schema): Schema | undefined {
  const def = (unwrap(schema) as z.core.$ZodTypes)._zod.def;
  return def.type === 'array' ? def.element : undefined;
}
