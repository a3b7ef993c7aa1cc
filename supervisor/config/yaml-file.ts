import { readFileSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import {
  type Document,
  isAlias,
  isNode,
  isScalar,
  isSeq,
  isMap as isYamlMap,
  LineCounter,
  type Node,
  parseAllDocuments,
  type YAMLMap,
} from 'yaml';
import { AgentdError, errorMessage } from '../../protocol/errors.ts';
import { type ExpandOptions, expandValue } from './expand.ts';
import { type ConfigProblems, quoted } from './problems.ts';
import {
  isMap,
  type Layer,
  type Tree,
  type TreeMap,
  type TreePath,
  UnknownValue,
  withoutNulls,
} from './tree.ts';

/** A configuration file is text that a person wrote; more than this is a mistake. */
const MAX_FILE_BYTES = 1024 * 1024;
/** Aliases repeat what they refer to, also themselves; this bounds what a file can grow to. */
const MAX_NODES = 100_000;
const MAX_DEPTH = 64;

/**
 * Reads a YAML (or JSON) file as one layer, `${NAME}` expanded and secret references parsed. What is
 * wrong is added to `problems`, located as `file:line:column`. Null when nobody can say what the file
 * holds.
 */
export function readYamlLayer(path: string, options: ExpandOptions, problems: ConfigProblems): Layer | null {
  try {
    return new YamlReader(path, readText(path, options.cwd), options, problems).read();
  } catch (error) {
    if (!(error instanceof AgentdError)) throw error;
    const { code, message, remedy } = error;
    problems.add({ code, where: null, message, remedy });
    return null;
  }
}

function readText(path: string, cwd: string): string {
  const full = resolve(cwd, path);
  try {
    const stat = statSync(full);
    // A FIFO or device would be read for as long as somebody writes to it.
    if (!stat.isFile()) throw new Error('it is not a regular file');
    if (stat.size > MAX_FILE_BYTES) throw new Error(`it is larger than ${MAX_FILE_BYTES} bytes`);
    return new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(full));
  } catch (error) {
    throw new AgentdError('CONFIG_INVALID', `configuration file ${path} cannot be read: ${reason(error)}`, {
      cause: error,
      remedy: 'Check the path, and that the file is UTF-8 text this user may read.',
    });
  }
}

function reason(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code === 'ENOENT') return 'it does not exist';
  if (code === 'EACCES') return 'permission denied';
  return code === 'ERR_ENCODING_INVALID_ENCODED_DATA' ? 'it is not UTF-8 text' : errorMessage(error);
}

class YamlReader {
  private readonly lines = new LineCounter();
  private readonly positions = { key: new Map<string, number>(), value: new Map<string, number>() };
  private nodes = 0;

  constructor(
    private readonly path: string,
    private readonly text: string,
    private readonly options: ExpandOptions,
    private readonly problems: ConfigProblems,
  ) {}

  /** @throws AgentdError CONFIG_INVALID when the file as a whole cannot be read */
  read(): Layer {
    const [document, second] = parseAllDocuments(this.text, {
      lineCounter: this.lines,
      prettyErrors: false,
      stringKeys: true,
      resolveKnownTags: false,
      logLevel: 'silent',
    });
    // An unknown tag is a warning to the parser; here it is a value nobody would read as written.
    const [issue] = [...(document?.errors ?? []), ...(document?.warnings ?? [])];
    if (issue !== undefined) throw this.unreadable(issue.pos[0], `not valid YAML: ${issue.message}`);
    if (second !== undefined) {
      throw this.unreadable(
        second.range[0],
        'a second YAML document is not allowed; use several --config files',
      );
    }
    const root = document?.contents ?? null;
    const tree = document === undefined || root === null ? {} : this.convert(root, [], document);
    // A file of comments alone says nothing, which is allowed.
    const mapping = tree === null ? {} : tree;
    if (!isMap(mapping)) {
      throw this.unreadable(root?.range?.[0] ?? 0, 'the file must hold a mapping of keys to values');
    }
    return {
      name: this.path,
      tree: withoutNulls(mapping),
      locate: (path, part) => this.locate(path, part),
    };
  }

  private convert(node: Node, path: TreePath, document: Document): Tree {
    this.nodes += 1;
    const offset = node.range?.[0] ?? 0;
    this.positions.value.set(keyOf(path), offset);
    if (this.nodes > MAX_NODES || path.length > MAX_DEPTH) {
      throw this.unreadable(
        offset,
        `the file is too large or too deep (${MAX_NODES} values, ${MAX_DEPTH} levels)`,
      );
    }
    if (isAlias(node)) {
      const target = node.resolve(document);
      if (target !== undefined) return this.convert(target, path, document);
      return this.unknown(offset, `the alias *${node.source} refers to nothing`);
    }
    if (isYamlMap(node)) return this.convertMap(node, path, document);
    if (isSeq(node)) {
      return node.items.map((item, at) =>
        isNode(item) ? this.convert(item, [...path, at], document) : null,
      );
    }
    return isScalar(node) ? this.scalar(node.value, offset) : null;
  }

  private convertMap(node: YAMLMap, path: TreePath, document: Document): TreeMap {
    const entries: [string, Tree][] = [];
    for (const { key, value } of node.items) {
      if (!isScalar(key)) continue;
      const name = String(key.value);
      this.positions.key.set(keyOf([...path, name]), key.range?.[0] ?? 0);
      entries.push([name, isNode(value) ? this.convert(value, [...path, name], document) : null]);
    }
    return Object.fromEntries(entries);
  }

  private scalar(value: unknown, offset: number): Tree {
    if (typeof value === 'number' || typeof value === 'boolean' || value === null) return value;
    if (typeof value !== 'string') {
      return this.unknown(offset, `the value ${quoted(String(value))} is not text, a number or true/false`);
    }
    return expandValue(value, this.at(offset), this.options, this.problems);
  }

  private unknown(offset: number, message: string): UnknownValue {
    this.problems.add({ code: 'CONFIG_INVALID', where: this.at(offset), message });
    return new UnknownValue();
  }

  private unreadable(offset: number, message: string): AgentdError {
    return new AgentdError('CONFIG_INVALID', `${this.at(offset)}: ${message}`);
  }

  private at(offset: number): string {
    const { line, col } = this.lines.linePos(offset);
    return `${this.path}:${line}:${col}`;
  }

  private locate(path: TreePath, part: 'key' | 'value'): string | undefined {
    const offset = this.positions[part].get(keyOf(path)) ?? this.positions.value.get(keyOf(path));
    return offset === undefined ? undefined : this.at(offset);
  }
}

function keyOf(path: TreePath): string {
  return JSON.stringify(path);
}
