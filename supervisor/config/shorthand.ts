import type { Tree, TreeMap } from './tree.ts';

/** The one-line forms of servers, routes and claims on the command line. */

/** What a shorthand could not be read as; the caller says where it was written. */
export class ShorthandError extends Error {}

/** `name=https://…` or `name=stdio:program args…`. */
export function parseServer(text: string): TreeMap {
  const at = text.indexOf('=');
  if (at < 1 || at === text.length - 1) {
    throw new ShorthandError(`${quote(text)} is not NAME=ENDPOINT, such as inbox=http://127.0.0.1:7000/mcp`);
  }
  return { name: text.slice(0, at), endpoint: text.slice(at + 1) };
}

/** Data-flow tags given to a server. */
export interface ServerTags {
  readonly name: string;
  readonly tags: readonly string[];
}

/** `name=tag,tag`. */
export function parseServerTags(text: string): ServerTags {
  const at = text.indexOf('=');
  if (at < 1) throw new ShorthandError(`${quote(text)} is not NAME=TAG[,TAG]`);
  return { name: text.slice(0, at), tags: splitList(text.slice(at + 1)) };
}

/** A claim given to a route. */
export interface GivenClaim {
  readonly match: string;
  readonly claim: TreeMap;
}

/** `uri=server[:tool|resource]`; the last `=` counts, since a URI may hold one. */
export function parseClaim(text: string): GivenClaim {
  const at = text.lastIndexOf('=');
  const server = text.slice(at + 1);
  if (at < 1 || server === '') {
    throw new ShorthandError(`${quote(text)} is not URI=SERVER[:tool|resource]`);
  }
  return { match: text.slice(0, at), claim: claimOf(server) };
}

/** Options of `--route`, and the key of a route they set. */
const ROUTE_OPTIONS: Readonly<Record<string, readonly string[]>> = {
  name: ['name'],
  server: ['server'],
  session: ['session'],
  instruction: ['instruction'],
  instruction_file: ['instruction_file'],
  shard_key: ['shard_key'],
  debounce: ['debounce'],
  max_inflight: ['max_inflight'],
  queue_cap: ['queue_cap'],
  overflow: ['overflow'],
  tools: ['tools'],
  ttl: ['claim', 'ttl'],
  renew_fraction: ['claim', 'renew_fraction'],
  style: ['claim', 'style'],
  key: ['claim', 'key'],
};

/**
 * `match=>spawn|continue:session|claim:server[:style][,key=value…]`. A comma inside a value is
 * written `\,`; several tools are separated by `|`.
 */
export function parseRoute(text: string): TreeMap {
  const arrow = text.indexOf('=>');
  if (arrow < 1) throw new ShorthandError(`${quote(text)} is not MATCH=>spawn|continue:SESSION|claim:SERVER`);
  const [action = '', ...options] = splitEscaped(text.slice(arrow + 2));
  const route: Record<string, Tree> = {
    match: text.slice(0, arrow).trim(),
    ...actionOf(action.trim(), text),
  };
  for (const option of options) {
    const at = option.indexOf('=');
    const name = option.slice(0, at).trim();
    const target = at < 1 ? undefined : ROUTE_OPTIONS[name];
    if (target === undefined) {
      const allowed = Object.keys(ROUTE_OPTIONS).join(', ');
      throw new ShorthandError(`${quote(option)} in the route ${quote(text)} is not one of ${allowed}`);
    }
    setOption(
      route,
      target,
      name === 'tools' ? splitOn(option.slice(at + 1), '|') : option.slice(at + 1),
      text,
    );
  }
  return route;
}

function actionOf(action: string, text: string): TreeMap {
  const [kind, rest] = cut(action, ':');
  switch (kind) {
    case 'spawn':
      if (rest === null) return {};
      break;
    case 'continue':
      if (rest !== '') return { disposition: 'continue', ...(rest === null ? {} : { session: rest }) };
      break;
    case 'claim':
      if (rest !== null && rest !== '') return { claim: claimOf(rest) };
      break;
  }
  throw new ShorthandError(
    `${quote(action)} in the route ${quote(text)} is not spawn, continue:SESSION or claim:SERVER`,
  );
}

function claimOf(text: string): TreeMap {
  const [server, style] = cut(text, ':');
  return { server, ...(style === null ? {} : { style }) };
}

function setOption(route: Record<string, Tree>, target: readonly string[], value: Tree, text: string): void {
  const [key = '', inner] = target;
  if (inner === undefined) {
    route[key] = value;
    return;
  }
  const claim = route[key];
  if (typeof claim !== 'object' || claim === null) {
    throw new ShorthandError(`${inner} in the route ${quote(text)} needs claim:SERVER`);
  }
  route[key] = { ...claim, [inner]: value };
}

/**
 * Splits the command of a stdio server into program and arguments: blanks separate, quotes group,
 * a backslash takes the next character as it is. Nothing else has a meaning, no shell is involved.
 */
export function splitCommand(text: string): string[] {
  const words: string[] = [];
  let word: string | null = null;
  let quoteSign: string | null = null;
  for (let at = 0; at < text.length; at += 1) {
    const char = text[at] ?? '';
    if (char === '\\' && quoteSign !== "'" && at + 1 < text.length) {
      at += 1;
      word = (word ?? '') + (text[at] ?? '');
    } else if (quoteSign !== null) {
      if (char === quoteSign) quoteSign = null;
      else word = (word ?? '') + char;
    } else if (char === '"' || char === "'") {
      quoteSign = char;
      word ??= '';
    } else if (/\s/.test(char)) {
      if (word !== null) words.push(word);
      word = null;
    } else {
      word = (word ?? '') + char;
    }
  }
  if (quoteSign !== null) throw new ShorthandError(`the command ${quote(text)} has an open quote`);
  if (word !== null) words.push(word);
  return words;
}

/** Items of a comma-separated list; blanks around them and empty ones do not count. */
export function splitList(text: string): string[] {
  return splitOn(text, ',');
}

function splitOn(text: string, separator: string): string[] {
  return text
    .split(separator)
    .map((item) => item.trim())
    .filter((item) => item !== '');
}

/** Splits at commas; `\,` is a comma. */
function splitEscaped(text: string): string[] {
  return text.split(/(?<!\\),/).map((part) => part.replaceAll('\\,', ','));
}

function cut(text: string, separator: string): [string, string | null] {
  const at = text.indexOf(separator);
  return at === -1 ? [text, null] : [text.slice(0, at), text.slice(at + separator.length)];
}

function quote(text: string): string {
  return JSON.stringify(text);
}
