import type { RouteConfig, SubscriptionConfig } from './config.ts';
import { type ResolveContext, refuse } from './context.ts';
import { readInstruction } from './instruction.ts';
import { SERVER_NAMES } from './resolve-servers.ts';
import { type ConfigDocument, type RouteDocument, routeSchema } from './schema.ts';
import { resolveShardKey } from './shard-key.ts';
import type { GivenClaim } from './shorthand.ts';
import { didYouMean } from './suggest.ts';
import type { TreePath } from './tree.ts';

/** From documents to routes and to what is watched for them. */

/** `--claim` and `--continue`. */
export interface RouteFlags {
  readonly claims: readonly GivenClaim[];
  readonly continues: readonly string[];
}

export interface ResolvedRoutes {
  readonly routes: RouteConfig[];
  readonly subscriptions: SubscriptionConfig[];
}

/** A route document and where it was written. */
interface Written {
  readonly document: RouteDocument;
  readonly path: TreePath;
  readonly flag: string | null;
}

export async function resolveRoutes(
  document: ConfigDocument,
  flags: RouteFlags,
  names: readonly string[],
  context: ResolveContext,
): Promise<ResolvedRoutes> {
  const declared = document.subscribe.map((entry, at) => {
    const subscription = typeof entry === 'string' ? splitServer(entry, names) : fromMapping(entry);
    checkServer(subscription.server, names, ['subscribe', at], 'a subscription', context);
    return subscription;
  });
  const written = withFlags(document.routes, flags, context);
  const routes = written.map((route) => resolveRoute(route, document.claim, names, context));
  const { addUnrouted, watched } = await import('./watching.ts');
  const all = addUnrouted(routes, declared, (match) => implicitRoute(match, document, names, context));
  checkNames(all, context);
  return { routes: all, subscriptions: watched(all, declared) };
}

function fromMapping(entry: { uri: string; server?: string | undefined }): SubscriptionConfig {
  return { server: entry.server ?? null, match: entry.uri };
}

/**
 * Splits `server:uri`. What stands before the first colon is a server when it is declared, or when a
 * whole URI follows it; otherwise it is the scheme of the URI.
 */
export function splitServer(text: string, servers: readonly string[]): SubscriptionConfig {
  const at = text.indexOf(':');
  const head = text.slice(0, at);
  const rest = text.slice(at + 1);
  const nested = /^[a-z][a-z0-9+.-]*:\/\//i.test(rest);
  const known = servers.includes(head) && (nested || /^(\*|[a-z][a-z0-9+.-]*:)/i.test(rest));
  return at > 0 && (nested || known) ? { server: head, match: rest } : { server: null, match: text };
}

/** Lays `--claim` and `--continue` over the routes, making routes where there are none. */
function withFlags(
  documents: readonly RouteDocument[],
  flags: RouteFlags,
  context: ResolveContext,
): Written[] {
  const written: Written[] = documents.map((document, at) => ({
    document,
    path: ['routes', at],
    flag: null,
  }));
  const lay = (match: string, over: Record<string, unknown>, flag: string): void => {
    const at = written.findIndex(({ document }) => document.match === match);
    const below = written[at];
    const parsed = routeSchema.safeParse({ match, ...over }, { jitless: true });
    if (!parsed.success) {
      const message = parsed.error.issues.map((issue) => issue.message).join('; ');
      context.problems.add({ code: 'USAGE', where: flag, message });
    } else if (below === undefined) {
      written.push({ document: parsed.data, path: [], flag });
    } else {
      const { disposition, session, claim } = parsed.data;
      const laid = 'claim' in over ? { claim } : { disposition, session };
      written[at] = { ...below, document: { ...below.document, ...laid } };
    }
  };
  for (const uri of flags.continues) lay(uri, { disposition: 'continue' }, '--continue');
  for (const { match, claim } of flags.claims) lay(match, { claim }, '--claim');
  return written;
}

function implicitRoute(
  { server, match }: SubscriptionConfig,
  document: ConfigDocument,
  names: readonly string[],
  context: ResolveContext,
): RouteConfig {
  const parsed = routeSchema.parse({ match, ...(server === null ? {} : { server }) }, { jitless: true });
  return resolveRoute({ document: parsed, path: [], flag: null }, document.claim, names, context);
}

function resolveRoute(
  { document, path, flag }: Written,
  defaults: ConfigDocument['claim'],
  names: readonly string[],
  context: ResolveContext,
): RouteConfig {
  const { server, match } =
    document.server === undefined
      ? splitServer(document.match, names)
      : { server: document.server, match: document.match };
  const name = document.name ?? match;
  const what = `route ${name}`;
  checkServer(server, names, [...path, 'server'], what, context, flag);
  if (document.disposition === 'spawn' && document.session !== undefined) {
    refuse(context, [...path, 'session'], `${what} starts a new run each time, so session has no meaning`, {
      needs: [
        [...path, 'session'],
        [...path, 'disposition'],
      ],
    });
  }
  const { claim } = document;
  if (claim !== undefined) {
    checkServer(claim.server, names, [...path, 'claim', 'server'], `the claim of ${what}`, context, flag);
    if (document.overflow === 'block') {
      refuse(
        context,
        [...path, 'overflow'],
        `${what} claims its items and cannot block on overflow: a blocked item would hold up items other replicas could take`,
        { remedy: 'Use overflow coalesce, drop_oldest or drop_newest on a claim route.' },
      );
    }
  }
  return {
    name,
    server,
    match,
    disposition:
      document.disposition === 'spawn'
        ? { kind: 'spawn' }
        : { kind: 'continue', session: document.session ?? name },
    claim:
      claim === undefined
        ? null
        : {
            server: claim.server,
            style: claim.style,
            ttlMs: claim.ttl ?? defaults.ttl,
            renewFraction: claim.renew_fraction ?? defaults.renew_fraction,
            key: claim.key,
          },
    instruction: readInstruction(document, path, what, context),
    outputContract: document.output_contract ?? null,
    shardKey: resolveShardKey(document.shard_key, path, what, context),
    debounceMs: document.debounce,
    maxInflight: document.max_inflight,
    queueCap: document.queue_cap ?? null,
    overflow: document.overflow,
    tools: document.tools ?? null,
  };
}

function checkServer(
  server: string | null,
  names: readonly string[],
  path: TreePath,
  what: string,
  context: ResolveContext,
  flag: string | null = null,
): void {
  if (server === null || names.includes(server)) return;
  refuse(
    context,
    path,
    `${what} names the MCP server ${server}, which is not declared${didYouMean(server, names)}`,
    {
      needs: [...(path.length === 0 ? [] : [path]), SERVER_NAMES],
      remedy: `Declare it under mcp.servers or with --mcp ${server}=ENDPOINT.`,
      ...(flag === null ? {} : { where: flag }),
    },
  );
}

/** The name is part of the claim key: two routes of one name would own each other's items. */
function checkNames(routes: readonly RouteConfig[], context: ResolveContext): void {
  const seen = new Set<string>();
  for (const { name } of routes) {
    if (seen.has(name)) {
      refuse(context, ['routes'], `two routes are named ${name}`, {
        needs: [['routes', '*', 'name']],
        remedy: 'Give one of them a name of its own.',
      });
    }
    seen.add(name);
  }
}
