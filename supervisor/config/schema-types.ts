import { z } from 'zod';
import { quoted } from './problems.ts';
import { BYTES_PATTERN, DURATION_PATTERN, parseBytes, parseDuration } from './quantities.ts';
import { SecretValue } from './tree.ts';

/**
 * The scalar types of the configuration. Each takes what a file writes (a number, true) and what a
 * flag, a variable or an expansion can carry (the same as text), and yields base units.
 */

const expected =
  (what: string) =>
  ({ input }: { readonly input?: unknown }): string => {
    if (input === undefined) return 'is required';
    if (input instanceof SecretValue) return 'a secret reference is not allowed here';
    return `expected ${what}, got ${quoted(input)}`;
  };

/** Text of at least one character. */
export function text() {
  return z.string({ error: expected('text') }).min(1, { error: 'must not be empty' });
}

/** One of a closed set. */
export function choice<const T extends readonly [string, ...string[]]>(values: T) {
  return z.enum(values, { error: expected(`one of ${values.join(', ')}`) });
}

/** true or false; from text also yes/no, on/off and 1/0. */
export function flag() {
  const error = expected('true or false');
  return z
    .union([z.boolean(), z.string().regex(/^(true|false|yes|no|on|off|1|0)$/i, { error })], { error })
    .transform((value) => (typeof value === 'boolean' ? value : /^(true|yes|on|1)$/i.test(value)));
}

/** A whole number within bounds. */
export function count(minimum: number, maximum: number = Number.MAX_SAFE_INTEGER) {
  const bounds =
    maximum === Number.MAX_SAFE_INTEGER ? `of at least ${minimum}` : `from ${minimum} to ${maximum}`;
  const error = expected(`a whole number ${bounds}`);
  return z
    .union(
      [
        z.int({ error }).min(minimum, { error }).max(maximum, { error }),
        z.string().regex(/^\d+$/, { error }),
      ],
      { error },
    )
    .transform((value, context) => {
      const number = Number(value);
      if (number >= minimum && number <= maximum) return number;
      context.addIssue({ code: 'custom', message: error({ input: value }) });
      return z.NEVER;
    });
}

/** A number strictly between 0 and 1. */
export function fraction() {
  const error = expected('a number between 0 and 1, both excluded');
  return z
    .union([z.number().gt(0, { error }).lt(1, { error }), z.string().regex(/^0?\.\d+$/, { error })], {
      error,
    })
    .transform((value, context) => {
      const number = Number(value);
      if (number > 0 && number < 1) return number;
      context.addIssue({ code: 'custom', message: error({ input: value }) });
      return z.NEVER;
    });
}

/**
 * A duration, in milliseconds.
 *
 * @param minimum shortest one that is allowed, ms
 */
export function duration(minimum = 0) {
  const error = expected('a duration such as 250ms, 30s, 5m, 4h or a number of seconds');
  return z
    .union([z.number().min(0, { error }), z.string().regex(new RegExp(DURATION_PATTERN), { error })], {
      error,
    })
    .transform((value, context) => {
      const ms = parseDuration(value);
      if (ms !== null && ms >= minimum) return ms;
      const message = ms === null ? error({ input: value }) : `must be at least ${minimum} ms`;
      context.addIssue({ code: 'custom', message });
      return z.NEVER;
    });
}

/** A size, in bytes. */
export function bytes() {
  const error = expected('a size such as 512M, 2G or a number of bytes');
  return z
    .union([z.int({ error }).min(1, { error }), z.string().regex(new RegExp(BYTES_PATTERN), { error })], {
      error,
    })
    .transform((value, context) => {
      const size = parseBytes(value);
      if (size !== null && size >= 1) return size;
      context.addIssue({ code: 'custom', message: error({ input: value }) });
      return z.NEVER;
    });
}

/** A secret, by reference only. */
export function secret() {
  return z
    .custom<SecretValue>((value) => value instanceof SecretValue, {
      error: 'a secret must be a reference, {{secret:NAME}} or {{secret-file:PATH}}, never the value itself',
    })
    .transform((value) => value.ref)
    .meta({ type: 'string', pattern: '\\{\\{\\s*secret(-file)?:[^{}]+\\}\\}' });
}

/** Names whose value is a credential. */
const CREDENTIAL_NAME =
  /(^|[-_.])(token|secret|passw(or)?d|passphrase|pwd|api[-_]?key|access[-_]?key|private[-_]?key|credentials?|authorization|auth|bearer|cookie)s?([-_.]|$)/i;

/** A mapping of names to text, where a name that looks like a credential takes a reference only. */
export function textOrSecrets() {
  const value = z.union([z.string(), secret()], { error: expected('text or a secret reference') });
  return z.record(z.string(), value).superRefine((entries, context) => {
    for (const [name, entry] of Object.entries(entries)) {
      if (typeof entry !== 'string' || !CREDENTIAL_NAME.test(name)) continue;
      context.addIssue({
        code: 'custom',
        path: [name],
        message: `${name} looks like a credential and holds a literal; write {{secret:NAME}} or {{secret-file:PATH}}`,
      });
    }
  });
}

/** An object of any shape: a JSON Schema. */
export function jsonObject() {
  return z.record(z.string(), z.unknown(), { error: expected('a JSON Schema object') });
}

/** A closed mapping. */
export function mapping<T extends z.core.$ZodLooseShape>(shape: T) {
  return z.strictObject(shape, {
    error: (issue) => (issue.code === 'invalid_type' ? expected('a mapping')(issue) : undefined),
  });
}

/** A list. */
export function list<T extends z.ZodType>(item: T) {
  return z.array(item, { error: expected('a list') });
}
