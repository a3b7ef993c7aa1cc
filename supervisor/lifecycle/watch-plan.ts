import type { Config } from '../config/config.ts';

/** What is watched on which server: exact URIs and globs. */
export class WatchList {
  private readonly byServer = new Map<string, Set<string>>();

  add(server: string, match: string): void {
    const matches = this.byServer.get(server) ?? new Set();
    this.byServer.set(server, matches.add(match));
  }

  delete(server: string, match: string): void {
    this.byServer.get(server)?.delete(match);
  }

  has(server: string, match: string): boolean {
    return this.byServer.get(server)?.has(match) ?? false;
  }

  /** Forgets every server but these. */
  keep(servers: readonly string[]): void {
    for (const server of this.byServer.keys()) if (!servers.includes(server)) this.byServer.delete(server);
  }

  each(visit: (server: string, match: string) => void): void {
    for (const [server, matches] of this.byServer) for (const match of matches) visit(server, match);
  }
}

/**
 * What a configuration watches. What it watches on any server is watched on the sources, not where
 * the claims are asked for.
 */
export function watchPlan(config: Config): WatchList {
  // A resource that carries its own lease is claimed where it is watched.
  const coordinators = new Set(
    config.routes.flatMap(({ claim }) =>
      claim === null || claim.style === 'resource' ? [] : [claim.server],
    ),
  );
  const sources = config.mcpServers.map(({ name }) => name).filter((name) => !coordinators.has(name));
  const plan = new WatchList();
  for (const { server, match } of config.subscriptions) {
    for (const name of server === null ? (sources.length > 0 ? sources : coordinators) : [server]) {
      plan.add(name, match);
    }
  }
  if (config.standby !== null) plan.add(config.standby.assignFrom.server, config.standby.assignFrom.uri);
  return plan;
}
