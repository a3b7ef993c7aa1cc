import type { ModelAnswer, ModelRequest } from './model.ts';

/** What one HTTP API looks like on the wire. Pure: requests are built and answers read, nothing is sent. */
export interface WireFormat {
  headers(token: string | undefined): Record<string, string>;
  body(request: ModelRequest, model: string | undefined): Record<string, unknown>;
  /** Reads an answer as loosely as it can; null when it is no answer of this API at all. */
  read(value: unknown, model: string | undefined): ModelAnswer | null;
}

/** Providers accept these names only; a name the model made up is sent back in this form. */
export function wireName(name: string): string {
  const clean = name.replace(/[^a-zA-Z0-9_-]/g, '_').slice(0, 64);
  return clean === '' ? 'unnamed' : clean;
}

/** A token count, where the endpoint reports one. */
export function countOf(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? Math.floor(value) : null;
}

export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
