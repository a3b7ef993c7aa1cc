import { resolve } from 'node:path';
import type { z } from 'zod';
import type { Config, Mode } from './config.ts';
import type { Purpose, ResolveContext } from './context.ts';
import { environmentLayer, type FlagValues, flagLayer } from './flag-layers.ts';
import { unimplementedUses } from './implemented.ts';
import { dotted, schemaIssues } from './issues.ts';
import { ConfigProblems, type Problem } from './problems.ts';
import { resolveConfig } from './resolve.ts';
import { type ConfigDocument, configSchema } from './schema.ts';
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
  const layers = [
    ...(await fileLayers(input)),
    environmentLayer(env, cwd, problems),
    flagLayer(flags, cwd, problems),
  ];
  problems.throwIfAny();
  const context: ResolveContext = {
    env,
    cwd,
    purpose: input.purpose,
    problems,
    warnings: strayVariables(env),
    where: (path) => whereIs(layers, path),
    rank: (path) => ownerOf(layers, path)?.rank ?? -1,
  };
  const merged = layers.reduce<TreeMap>((under, layer) => mergeTrees(under, layer.tree), {});
  // Compiling a schema pays from the second document on; there is one.
  const parsed = configSchema.safeParse(merged, { jitless: true });
  if (!parsed.success) {
    for (const problem of schemaProblems(parsed.error, layers)) problems.add(problem);
    problems.throwIfAny();
    throw parsed.error;
  }
  for (const { feature, path } of unimplementedUses(parsed.data)) {
    const name = whereIs(layers, path);
    problems.add({
      code: 'NOT_IMPLEMENTED',
      where: name,
      message: `${dotted(path)} is not implemented in this build (feature ${feature})`,
    });
  }
  problems.throwIfAny();
  const config = await resolveConfig(
    parsed.data,
    {
      defaultMode: input.defaultMode,
      terminal: input.terminal,
      routeFlags: { claims: listFlag(flags, '--claim'), continues: listFlag(flags, '--continue') },
      tagFlags: listFlag(flags, '--mcp-tags'),
    },
    context,
  );
  problems.throwIfAny();
  await checkStartup(config, context);
  problems.throwIfAny();
  return {
    config,
    warnings: context.warnings,
    sources: sourcesOf(merged, layers),
    files: filesRead(input, parsed.data),
  };
}

/** The files named by the configuration that it is read from. */
function namedFiles({ flags, env }: LoadInput): {
  readonly paths: readonly string[];
  readonly servers: string;
} {
  const named = listFlag(flags, '--config');
  return {
    paths: named.length > 0 ? named : splitList(env.AGENT_CONFIG ?? ''),
    servers: env.AGENT_MCP_CONFIG ?? '',
  };
}

function filesRead(input: LoadInput, document: ConfigDocument): string[] {
  const { paths, servers } = namedFiles(input);
  const instructions = [document.agent, ...document.routes].flatMap((one) => one.instruction_file ?? []);
  const all = [...paths, ...(servers === '' ? [] : [servers]), ...instructions];
  return [...new Set(all.map((path) => resolve(input.cwd, path)))];
}

async function fileLayers(input: LoadInput): Promise<Layer[]> {
  const { env, cwd } = input;
  const { paths, servers } = namedFiles(input);
  if (paths.length === 0 && servers === '') return [];
  // The YAML parser is loaded only where there is YAML.
  const { readYamlLayer } = await import('./yaml-file.ts');
  const layers = paths.map((path) => withLongShard(readYamlLayer(path, { cwd, env })));
  if (servers === '') return layers;
  const { mcpServersLayer } = await import('./mcp-file.ts');
  return [...layers, mcpServersLayer(readYamlLayer(servers, { cwd, env }))];
}

/** `shard: K/N` is short for `shard: {index: K/N}`. */
function withLongShard(layer: Layer): Layer {
  const { shard } = layer.tree;
  return typeof shard === 'string' ? { ...layer, tree: { ...layer.tree, shard: { index: shard } } } : layer;
}

/** What the schema complains about, in the order a person reads the file. */
function schemaProblems(error: z.core.$ZodError, layers: readonly Layer[]): Problem[] {
  const problems = schemaIssues(error).map(({ path, part, message }): Problem => {
    const named = dotted(part === 'key' ? path.slice(0, -1) : path);
    const where = whereIs(layers, path, part);
    return { code: 'CONFIG_INVALID', where, message: named === '' ? message : `${named}: ${message}` };
  });
  const order = new Intl.Collator('en', { numeric: true });
  return problems.sort((a, b) => order.compare(a.where ?? '', b.where ?? ''));
}

function whereIs(layers: readonly Layer[], path: TreePath, part: 'key' | 'value' = 'value'): string | null {
  const owner = ownerOf(layers, path);
  for (let depth = path.length; owner !== null && depth >= 1; depth -= 1) {
    const found = owner.layer.locate(path.slice(0, depth), part);
    if (found !== undefined) return found;
  }
  return null;
}

function listFlag(flags: FlagValues, name: string): readonly string[] {
  const given = flags[name];
  if (given === undefined || given === true) return [];
  return typeof given === 'string' ? [given] : given;
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
