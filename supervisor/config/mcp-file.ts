import type { ConfigProblems } from './problems.ts';
import { isList, isMap, type Layer, type Tree, type TreeMap, type TreePath } from './tree.ts';

/**
 * Reads the file AGENT_MCP_CONFIG names as a layer of servers: either a `servers` list as under
 * `mcp` in a configuration file, or the `mcpServers` mapping many MCP clients share.
 * When it is neither, that is added to `problems`, and there is no layer.
 */
export function mcpServersLayer(file: Layer, problems: ConfigProblems): Layer | null {
  const { servers, mcpServers } = file.tree;
  const [key, items, names] = isList(servers)
    ? (['servers', servers, null] as const)
    : isMap(mcpServers)
      ? (['mcpServers', Object.entries(mcpServers).map(clientServer), Object.keys(mcpServers)] as const)
      : [null, [], null];
  if (key === null) {
    problems.add({
      code: 'CONFIG_INVALID',
      where: null,
      message: `${file.name} (AGENT_MCP_CONFIG) holds no list of MCP servers`,
      remedy: 'Give it a `servers` list, or an `mcpServers` mapping of names to servers.',
    });
    return null;
  }
  return {
    name: file.name,
    tree: { mcp: { servers: items } },
    locate: ([first, second, at, ...rest], part) => {
      if (first !== 'mcp') return undefined;
      if (second === undefined || at === undefined) return file.locate([key], part);
      const step = names === null ? at : (names[Number(at)] ?? '');
      return file.locate([key, step, ...(names === null ? rest : rest.map(clientKey))], part);
    },
  };
}

/** One entry of `mcpServers`, in our words. `type` says what `url` and `command` already say. */
function clientServer([name, entry]: readonly [string, Tree]): Tree {
  if (!isMap(entry)) return entry;
  const { url, command, args, type: _type, ...rest } = entry;
  const server: Record<string, Tree> = { name, ...rest };
  if (url !== undefined) server.endpoint = url;
  if (command !== undefined) server.command = [command, ...(isList(args) ? args : [])];
  return server satisfies TreeMap;
}

function clientKey(step: TreePath[number]): TreePath[number] {
  return step === 'endpoint' ? 'url' : step;
}
