import type { RouteConfig } from '../config/config.ts';
import { compileMatch, type UriMatch } from './match.ts';

/** A route ready to be matched. */
export interface Route {
  readonly config: RouteConfig;
  readonly match: UriMatch;
}

/**
 * Finds the one owner of an update, or none: an exact match beats a glob, then the longest literal
 * prefix wins, then declared order. No fan-out.
 */
export class Router {
  readonly routes: readonly Route[];
  private readonly exact = new Map<string, Route[]>();
  private readonly globs: Route[];

  constructor(configs: readonly RouteConfig[]) {
    this.routes = configs.map((config) => ({ config, match: compileMatch(config.match) }));
    for (const route of this.routes) {
      if (!route.match.exact) continue;
      const same = this.exact.get(route.config.match);
      if (same === undefined) this.exact.set(route.config.match, [route]);
      else same.push(route);
    }
    // sort() is stable, so declared order decides between equal prefixes.
    this.globs = this.routes
      .filter((route) => !route.match.exact)
      .sort((a, b) => b.match.literalPrefix - a.match.literalPrefix);
  }

  find(server: string, uri: string): Route | null {
    const takes = (route: Route): boolean => route.config.server === null || route.config.server === server;
    return (
      this.exact.get(uri)?.find(takes) ??
      this.globs.find((route) => takes(route) && route.match.test(uri)) ??
      null
    );
  }
}
