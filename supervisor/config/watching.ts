import { compileMatch, type UriMatch } from '../routing/match.ts';
import type { RouteConfig, SubscriptionConfig } from './config.ts';

/** Subscriptions say what to watch, routes what to do; this makes each complete from the other. */

/**
 * Adds a route that starts a run for every subscription no route could take, in the order of the
 * subscriptions.
 */
export function addUnrouted(
  routes: readonly RouteConfig[],
  subscriptions: readonly SubscriptionConfig[],
  make: (subscription: SubscriptionConfig) => RouteConfig,
): RouteConfig[] {
  const all = [...routes];
  for (const subscription of subscriptions) {
    if (!all.some((route) => meet(route, subscription))) all.push(make(subscription));
  }
  return all;
}

/**
 * What to subscribe to: every declared subscription, and the match of every route that none of them
 * could feed, so that no route is deaf.
 */
export function watched(
  routes: readonly RouteConfig[],
  subscriptions: readonly SubscriptionConfig[],
): SubscriptionConfig[] {
  // What another route watches is no reason: it may be a small part of what this one takes.
  const unfed = routes.filter((route) => !subscriptions.some((subscription) => meet(route, subscription)));
  const own = new Map(unfed.map(({ server, match }) => [JSON.stringify([server, match]), { server, match }]));
  return [...subscriptions, ...own.values()];
}

/** Whether some URI of some server could be taken by both. Two globs: judged by their literal beginnings. */
function meet(one: SubscriptionConfig, other: SubscriptionConfig): boolean {
  if (one.server !== null && other.server !== null && one.server !== other.server) return false;
  const [first, second] = [compileMatch(one.match), compileMatch(other.match)];
  if (first.exact) return second.test(one.match);
  if (second.exact) return first.test(other.match);
  const [a, b] = [literal(one.match, first), literal(other.match, second)];
  return a.startsWith(b) || b.startsWith(a);
}

function literal(pattern: string, match: UriMatch): string {
  return pattern.slice(0, match.literalPrefix);
}
