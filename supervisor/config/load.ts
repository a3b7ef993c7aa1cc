import { resolve } from 'node:path';
import { AgentdError } from '../../protocol/errors.ts';
import type { Config, Mode } from './config.ts';
import type { Purpose, ResolveContext } from './context.ts';
import { readDocument } from './document.ts';
import { environmentLayer, type FlagValues, flagLayer } from './flag-layers.ts';
import { unimplementedUses } from './implemented.ts';
import { dotted } from './issues.ts';
import { type ListFlags, readListFlags } from './list-flags.ts';
import { ConfigProblems } from './problems.ts';
import { resolveConfig } from './resolve.ts';
import type { ConfigDocument } from './schema.ts';
import { SETTINGS } from './settings.ts';
import { splitList } from './shorthand.ts';
import { checkStartup } from './startup-rules.ts';
import { nearest } from './suggest.ts';
import {
  getAt,
  isMap,
  type Layer,
  mergeTrees,
  ownerOf,
  type Tree,
  type TreeMap,
  type TreePath,
} from './tree.ts';

export interface LoadInput {
  readonly flags: FlagValues;
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  /** The mode when nothing names one. */
  readonly defaultMode: Mode;
  /** Whether standard error is a terminal. */
  readonly terminal: boolean;
  readonly purpose: Purpose;
}

export interface LoadedConfig {
  readonly config: Config;
  /** For `config.warn`, one sentence each. */
  readonly warnings: readonly string[];
  /** Where each key that was set came from, by dotted key. */
  readonly sources: Readonly<Record<string, string>>;
  /** Absolute paths of what was read: configuration files, server files and instruction files. */
  readonly files: readonly string[];
}

/**
 * Reads every layer, validates the whole and returns the configuration. No side effect: nothing is
 * opened but the files named.
 *
 * @throws AgentdError CONFIG_INVALID, CONFIG_UNSET_VARIABLE, SECRET_UNREADABLE, LISTEN_REFUSED,
 *   NOT_IMPLEMENTED or USAGE, exit 2, naming everything that is wrong and where
 */
export async function loadConfig(input: LoadInput): Promise<LoadedConfig> {
  const { flags, env, cwd } = input;
  const problems = new ConfigProblems();
  const given = readListFlags(flags, env, problems);
  const files = await fileLayers(input, given, problems);
  const layers = [
    // Above a file that cannot be read; what is under it may be covered by it.
    ...files.slice(files.lastIndexOf(null) + 1).filter((layer) => layer !== null),
    environmentLayer(env, cwd, problems),
    flagLayer(flags, { cwd, env }, problems),
  ];
  const merged = layers.reduce<TreeMap>((under, layer) => mergeTrees(under, layer.tree), {});
  const read = readDocument(
    {
      tree: merged,
      partial: files.includes(null),
      where: (path, part) => whereIs(layers, path, part),
    },
    problems,
  );
  if (read === null) {
    problems.throwIfAny();
    throw new AgentdError('CONFIG_INVALID', 'the configuration cannot be read');
  }
  const { document, written } = read;
  const context: ResolveContext = {
    env,
    cwd,
    purpose: input.purpose,
    problems,
    warnings: strayVariables(env),
    where: (path) => whereIs(layers, written(path)),
    rank: (path) => ownerOf(layers, written(path))?.rank ?? -1,
    written,
  };
  for (const { feature, path } of unimplementedUses(document)) {
    problems.add({
      code: 'NOT_IMPLEMENTED',
      where: context.where(path),
      message: `${dotted(written(path))} is not implemented in this build (feature ${feature})`,
    });
  }
  const config = await resolveConfig(
    document,
    {
      defaultMode: input.defaultMode,
      terminal: input.terminal,
      routeFlags: given,
      tagFlags: given.tags,
    },
    context,
  );
  await checkStartup(config, context);
  problems.throwIfAny();
  return {
    config,
    warnings: context.warnings,
    sources: sourcesOf(merged, layers),
    files: filesRead(input, given, document),
  };
}

/** The files named by the configuration that it is read from. */
function namedFiles(
  env: NodeJS.ProcessEnv,
  { configs }: ListFlags,
): { readonly paths: readonly (string | null)[]; readonly servers: string } {
  return {
    paths: configs.length > 0 ? configs : splitList(env.AGENT_CONFIG ?? ''),
    servers: env.AGENT_MCP_CONFIG ?? '',
  };
}

function filesRead({ env, cwd }: LoadInput, given: ListFlags, document: ConfigDocument): string[] {
  const { paths, servers } = namedFiles(env, given);
  const instructions = [document.agent, ...document.routes].flatMap((one) => one.instruction_file ?? []);
  const all = [...paths, servers === '' ? null : servers, ...instructions].filter((path) => path !== null);
  return [...new Set(all.map((path) => resolve(cwd, path)))];
}

/** The layers of the files; null for one that nobody can read. */
async function fileLayers(
  { env, cwd }: LoadInput,
  given: ListFlags,
  problems: ConfigProblems,
): Promise<(Layer | null)[]> {
  const { paths, servers } = namedFiles(env, given);
  if (paths.length === 0 && servers === '') return [];
  // The YAML parser is loaded only where there is YAML.
  const { readYamlLayer } = await import('./yaml-file.ts');
  const read = (path: string | null): Layer | null =>
    path === null ? null : readYamlLayer(path, { cwd, env }, problems);
  const layers = paths.map((path) => withLongShard(read(path)));
  if (servers === '') return layers;
  const { mcpServersLayer } = await import('./mcp-file.ts');
  const file = read(servers);
  return [...layers, file === null ? null : mcpServersLayer(file, problems)];
}

/** `shard: K/N` is short for `shard: {index: K/N}`. */
function withLongShard(layer: Layer | null): Layer | null {
  if (layer === null) return null;
  const { shard } = layer.tree;
  return typeof shard === 'string' ? { ...layer, tree: { ...layer.tree, shard: { index: shard } } } : layer;
}

function whereIs(layers: readonly Layer[], path: TreePath, part: 'key' | 'value' = 'value'): string | null {
  const owner = ownerOf(layers, path);
  for (let depth = path.length; owner !== null && depth >= 1; depth -= 1) {
    const found = owner.layer.locate(path.slice(0, depth), part);
    if (found !== undefined) return found;
  }
  return null;
}

function sourcesOf(merged: TreeMap, layers: readonly Layer[]): Record<string, string> {
  const sources: [string, string][] = [];
  const walk = (tree: Tree | undefined, path: TreePath): void => {
    if (isMap(tree) && Object.keys(tree).length > 0) {
      for (const key of Object.keys(tree)) walk(getAt(tree, [key]), [...path, key]);
    } else {
      sources.push([dotted(path), whereIs(layers, path) ?? 'unknown']);
    }
  };
  for (const key of Object.keys(merged)) walk(merged[key], [key]);
  return Object.fromEntries(sources);
}

const PREFIX = 'AGENT_';

/** A variable nobody reads, one slip away from one that somebody does. */
function strayVariables(env: NodeJS.ProcessEnv): string[] {
  const known = SETTINGS.flatMap(({ env: names = [] }) => names.filter((name) => name.startsWith(PREFIX)));
  return Object.keys(env)
    .filter((name) => name.startsWith(PREFIX) && !known.includes(name) && !KNOWN_APART.test(name))
    .flatMap((name) => {
      // Compared without what all of them share, which would make any two of them alike.
      const near = nearest(
        name.slice(PREFIX.length),
        known.map((other) => other.slice(PREFIX.length)),
      );
      return near === null ? [] : [`the variable ${name} is not read (did you mean ${PREFIX}${near}?)`];
    });
}

/** Read elsewhere, or by the units of a fleet (`AGENT_SHARD=%i/${AGENT_SHARDS}`). */
const KNOWN_APART =
  /^AGENT_(CONFIG|MCP_CONFIG|SHARDS|POD_(NAME|UID|NAMESPACE)|NODE_NAME|INTELLIGENCE_TOKEN_[1-9]\d*(_FILE)?)$/;
