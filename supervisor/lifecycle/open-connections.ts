import { type Connections, type ConnectionsInput, unknownServer } from './connections.ts';

/** A run without MCP servers loads nothing of MCP: a one-shot's start is measured in milliseconds. */
export async function connections(input: ConnectionsInput): Promise<Connections> {
  let inner = input.config.mcpServers.length === 0 ? NONE : await connected(input);
  return {
    start: () => inner.start(),
    callTool: (call) => inner.callTool(call),
    calls: {
      claim: (...args) => inner.calls.claim(...args),
      renew: (...args) => inner.calls.renew(...args),
      ack: (...args) => inner.calls.ack(...args),
      release: (...args) => inner.calls.release(...args),
    },
    tools: () => inner.tools(),
    describe: (...args) => inner.describe(...args),
    claimNext: (...args) => inner.claimNext(...args),
    pending: (...args) => inner.pending(...args),
    forget: (runId) => inner.forget(runId),
    peers: () => inner.peers(),
    watch: (...args) => inner.watch(...args),
    unwatch: (...args) => inner.unwatch(...args),
    read: (...args) => inner.read(...args),
    prepare: async (config, servers) => {
      if (inner !== NONE || config.mcpServers.length === 0) return inner.prepare(config, servers);
      const made = await connected(input);
      const prepared = await made.prepare(config, servers);
      return {
        commit: (runs) => {
          inner = made;
          prepared.commit(runs);
        },
        abandon: () => prepared.abandon(),
      };
    },
    reread: (which) => inner.reread(which),
    sweep: (underWay) => inner.sweep(underWay),
    disarm: () => inner.disarm(),
    close: (budgetMs) => inner.close(budgetMs),
  };
}

async function connected(input: ConnectionsInput): Promise<Connections> {
  return (await import('./mcp-connections.ts')).connected(input);
}

const NOT_CONNECTED = { kind: 'failed', error: 'no MCP server is configured' } as const;

/** No servers: nothing to connect to and nothing to call. */
const NONE: Connections = {
  start: () => Promise.resolve(),
  callTool: () => Promise.resolve({ text: 'No tools are configured.', is_error: true }),
  calls: {
    claim: () => Promise.resolve(NOT_CONNECTED),
    renew: () => Promise.resolve(NOT_CONNECTED),
    ack: () => Promise.resolve(NOT_CONNECTED),
    release: () => Promise.resolve(NOT_CONNECTED),
  },
  tools: () => [],
  describe: () => Promise.resolve(null),
  claimNext: () => Promise.resolve([]),
  pending: () => Promise.resolve([]),
  forget: () => undefined,
  peers: () => [],
  watch: () => undefined,
  unwatch: () => undefined,
  read: (server) => Promise.reject(unknownServer(server)),
  prepare: () => Promise.resolve({ commit: () => undefined, abandon: () => Promise.resolve() }),
  reread: () => undefined,
  sweep: () => undefined,
  disarm: () => undefined,
  close: () => Promise.resolve(),
};
