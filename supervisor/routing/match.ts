import picomatch from 'picomatch';

/** A compiled URI pattern. */
export interface UriMatch {
  /** The pattern is one URI, letter for letter. */
  readonly exact: boolean;
  /** Characters before the first wildcard: the longer, the more specific. */
  readonly literalPrefix: number;
  test(uri: string): boolean;
}

/** `?` starts a URI's query, so it is an ordinary character here; the other glob signs keep their meaning. */
const WILDCARD = /[*[{]/;

/**
 * Compiles an exact URI or a glob (`*` within a path segment, `**` across segments, `{a,b}`,
 * `[a-z]`).
 */
export function compileMatch(pattern: string): UriMatch {
  const first = pattern.search(WILDCARD);
  if (first === -1) return { exact: true, literalPrefix: pattern.length, test: (uri) => uri === pattern };
  const prefix = pattern.slice(0, first);
  // Compared as text, so that nothing in a scheme, authority or query can act as a glob sign.
  const rest = picomatch(pattern.slice(first).replace(/[?()!+@|]/g, '\\$&'), { dot: true, nonegate: true });
  return {
    exact: false,
    literalPrefix: first,
    test: (uri) => uri.startsWith(prefix) && rest(uri.slice(first)),
  };
}
