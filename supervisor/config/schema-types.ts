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

/** What a scalar looks like in the JSON Schema. */
type JsonForm = Readonly<Record<string, unknown>>;

/**
 * A scalar read by `read`, which returns null for what it does not accept. One schema instead of a
 * union of checks: these are built on every start.
 */
function scalar<T>(
  what: string,
  forms: readonly JsonForm[],
  read: (value: string | number | boolean) => T | null,
) {
  const complain = expected(what);
  return z
    .unknown()
    .transform((input, context): T => {
      const plain = typeof input === 'string' || typeof input === 'number' || typeof input === 'boolean';
      const value = plain ? read(input) : null;
      if (value !== null) return value;
      context.addIssue({ code: 'custom', message: complain({ input }) });
      return z.NEVER;
    })
    .meta({ anyOf: forms });
}

const TEXT = z.string({ error: expected('text') }).min(1, { error: 'must not be empty' });

/** Text of at least one character. */
export function text() {
  return TEXT;
}

/** One of a closed set. */
export function choice<const T extends readonly [string, ...string[]]>(values: T) {
  return z.enum(values, { error: expected(`one of ${values.join(', ')}`) });
}

const TRUE = /^(true|yes|on|1)$/i;
const FALSE = /^(false|no|off|0)$/i;

/** true or false; from text also yes/no, on/off and 1/0. */
export function flag() {
  const forms = [{ type: 'boolean' }, { type: 'string', pattern: '^(true|false|yes|no|on|off|1|0)$' }];
  return scalar('true or false', forms, (value) => {
    if (typeof value === 'boolean') return value;
    if (typeof value === 'number') return null;
    return TRUE.test(value) ? true : FALSE.test(value) ? false : null;
  });
}

/** A whole number within bounds. */
export function count(minimum: number, maximum: number = Number.MAX_SAFE_INTEGER) {
  const open = maximum === Number.MAX_SAFE_INTEGER;
  const forms = [
    { type: 'integer', minimum, ...(open ? {} : { maximum }) },
    { type: 'string', pattern: '^\\d+$' },
  ];
  const what = `a whole number ${open ? `of at least ${minimum}` : `from ${minimum} to ${maximum}`}`;
  return scalar(what, forms, (value) => {
    if (typeof value === 'boolean' || (typeof value === 'string' && !/^\d+$/.test(value))) return null;
    const number = Number(value);
    return Number.isSafeInteger(number) && number >= minimum && number <= maximum ? number : null;
  });
}

/** A number strictly between 0 and 1. */
export function fraction() {
  const forms = [
    { type: 'number', exclusiveMinimum: 0, exclusiveMaximum: 1 },
    { type: 'string', pattern: '^0?\\.\\d+$' },
  ];
  return scalar('a number between 0 and 1, both excluded', forms, (value) => {
    if (typeof value === 'boolean' || (typeof value === 'string' && !/^0?\.\d+$/.test(value))) return null;
    const number = Number(value);
    return number > 0 && number < 1 ? number : null;
  });
}

/**
 * A duration, in milliseconds.
 *
 * @param minimum shortest one that is allowed, ms
 */
export function duration(minimum = 0) {
  const least = minimum > 1 ? `, at least ${minimum}ms` : '';
  const forms = [
    { type: 'number', minimum: minimum / 1_000 },
    { type: 'string', pattern: DURATION_PATTERN },
  ];
  return scalar(`a duration such as 250ms, 30s, 5m, 4h or a number of seconds${least}`, forms, (value) => {
    const ms = typeof value === 'boolean' ? null : parseDuration(value);
    return ms !== null && ms >= minimum ? ms : null;
  });
}

/** A size, in bytes. */
export function bytes() {
  const forms = [
    { type: 'integer', minimum: 1 },
    { type: 'string', pattern: BYTES_PATTERN },
  ];
  return scalar('a size such as 512M, 2G or a number of bytes', forms, (value) => {
    const size = typeof value === 'boolean' ? null : parseBytes(value);
    return size !== null && size >= 1 ? size : null;
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
