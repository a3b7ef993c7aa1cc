import { CANONICAL_FIELDS } from '../../protocol/event-line.ts';
import type { LogFields } from './log.ts';

/**
 * Makes what callers log safe to keep and to print: plain JSON values, bounded in length, depth and
 * breadth whatever is passed in (invariant 8), with credentials taken out (invariant 9).
 */

/** Longest string value kept, UTF-16 units. */
export const MAX_VALUE_CHARS = 8_192;
/** Text kept in one line over all its values, UTF-16 units. */
const MAX_LINE_CHARS = 65_536;
const MAX_DEPTH = 6;
const MAX_KEYS = 64;
const MAX_ITEMS = 100;

/** The fields of the contract that follow the canonical ones, in its order. */
const KNOWN_FIELDS = ['trace_id', 'span_id', 'parent_span_id', 'dur_ms', 'err', 'msg'] as const;
const KNOWN: ReadonlySet<string> = new Set(KNOWN_FIELDS);

const SECRET_KEY =
  /^(authorization|proxy-authorization|cookie|set-cookie|password|passwd|secret|client_secret|private_key|bearer|api[_-]?key|x-api-key|token|(access|refresh|auth|id|bearer|intelligence)[_-]?token)$/i;
const REDACTED = '[redacted]';

interface Budget {
  chars: number;
}

/**
 * The fields of a line in contract order: the known ones first, then the caller's own. Canonical
 * names and undefined values are left out. Never throws.
 */
export function boundedFields(fields: LogFields): Record<string, unknown> {
  const budget: Budget = { chars: MAX_LINE_CHARS };
  const result: Record<string, unknown> = {};
  for (const key of KNOWN_FIELDS) {
    const value = read(fields, key);
    if (value !== undefined) result[key] = key === 'err' ? errorField(value) : field(key, value, budget, []);
  }
  let keys = 0;
  for (const key of Object.keys(fields)) {
    if (KNOWN.has(key) || CANONICAL_FIELDS.has(key)) continue;
    if (++keys > MAX_KEYS) break;
    const value = read(fields, key);
    if (value !== undefined) result[cut(key, 128)] = field(key, value, budget, []);
  }
  return result;
}

/** `text` cut to `max` UTF-16 units, saying how much is missing; never inside a surrogate pair. */
export function cut(text: string, max: number): string {
  if (text.length <= max) return text;
  const last = text.charCodeAt(max - 1);
  const end = last >= 0xd800 && last <= 0xdbff ? max - 1 : max;
  return `${text.slice(0, end)}…[+${text.length - end}]`;
}

/** Takes user information out of URLs and bearer tokens out of header-like text. */
export function withoutCredentials(text: string): string {
  let safe = text;
  if (safe.includes('@') && safe.includes('://'))
    safe = safe.replace(/(:\/\/)[^\s/@"']+@/g, `$1${REDACTED}@`);
  if (safe.includes('earer ')) safe = safe.replace(/([Bb]earer )[^\s"',;]+/g, `$1${REDACTED}`);
  return safe;
}

function read(holder: object, key: string): unknown {
  try {
    return (holder as Record<string, unknown>)[key];
  } catch {
    return '[unreadable]';
  }
}

/** A number under a name like `token` is a count; anything else under it is a credential. */
function isSecretKey(key: string, value: unknown): boolean {
  return typeof value !== 'number' && typeof value !== 'boolean' && value !== null && SECRET_KEY.test(key);
}

/** The value of one key: the key tells a credential, and a duration. */
function field(key: string, value: unknown, budget: Budget, path: readonly object[]): unknown {
  if (isSecretKey(key, value)) return REDACTED;
  // Clocks read nanoseconds; nobody reads more of a duration than a tenth of a millisecond.
  if (typeof value === 'number' && key.endsWith('_ms'))
    return bounded(Math.round(value * 10) / 10, budget, path);
  return bounded(value, budget, path);
}

function errorField(value: unknown): { type: string; message: string } {
  if (typeof value !== 'object' || value === null) return { type: 'Error', message: text(String(value)) };
  const type = read(value, 'type') ?? read(value, 'code') ?? read(value, 'name') ?? 'Error';
  const message = read(value, 'message') ?? '';
  return { type: cut(String(type), 128), message: text(String(message)) };
}

function text(value: string): string {
  return withoutCredentials(cut(value, MAX_VALUE_CHARS));
}

function bounded(value: unknown, budget: Budget, path: readonly object[]): unknown {
  switch (typeof value) {
    case 'string': {
      const kept = withoutCredentials(cut(value, Math.max(0, Math.min(MAX_VALUE_CHARS, budget.chars))));
      budget.chars -= kept.length;
      return kept;
    }
    case 'number':
      return Number.isFinite(value) ? value : null;
    case 'boolean':
      return value;
    case 'bigint':
      return value.toString();
    case 'object':
      return value === null ? null : boundedObject(value, budget, path);
    default:
      return `[${typeof value}]`;
  }
}

function boundedObject(value: object, budget: Budget, path: readonly object[]): unknown {
  if (path.includes(value)) return '[circular]';
  if (path.length >= MAX_DEPTH) return Array.isArray(value) ? '[array]' : '[object]';
  if (value instanceof Error) return errorField(value);
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`;
  const inner = [...path, value];
  if (Array.isArray(value)) {
    const items = value.slice(0, MAX_ITEMS).map((item) => bounded(item, budget, inner));
    if (value.length > MAX_ITEMS) items.push(`…[+${value.length - MAX_ITEMS}]`);
    return items;
  }
  if (value instanceof Map || value instanceof Set) return `[${value.constructor.name} of ${value.size}]`;
  const result: Record<string, unknown> = {};
  let keys = 0;
  for (const key of Object.keys(value)) {
    if (++keys > MAX_KEYS || budget.chars <= 0) break;
    const item = read(value, key);
    if (item === undefined) continue;
    budget.chars -= key.length;
    result[cut(key, 128)] = field(key, item, budget, inner);
  }
  return result;
}
