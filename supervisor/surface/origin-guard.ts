import { isLoopback } from './listen-url.ts';

/** Why a request is refused before anything looks at it. */
export type OriginRefusal = 'host' | 'origin';

export interface OriginRules {
  /** Names beside loopback that a Host header may carry; lower case, no port. */
  readonly hosts: ReadonlySet<string>;
  /** Whether the certificate in use names this host; null without TLS. */
  readonly certified: ((host: string) => boolean) | null;
}

/**
 * Refuses requests a web page made a browser send: a Host that is not ours (DNS rebinding) or an
 * Origin that is not the host it was sent to. Ports may differ, since people forward them.
 */
export function originRefusal(
  host: string | undefined,
  origin: string | undefined,
  rules: OriginRules,
): OriginRefusal | null {
  const name = hostName(host);
  if (name === null || !isOurs(name, rules)) return 'host';
  if (origin === undefined) return null;
  return originName(origin) === name ? null : 'origin';
}

function isOurs(name: string, rules: OriginRules): boolean {
  return isLoopback(name) || rules.hosts.has(name) || (rules.certified?.(name) ?? false);
}

/** The lower-case host of a Host header, without port and brackets; null when it is not one. */
function hostName(header: string | undefined): string | null {
  const match = /^(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::\d{1,5})?$/i.exec(header ?? '');
  return (match?.[1] ?? match?.[2])?.toLowerCase() ?? null;
}

function originName(origin: string): string | null {
  try {
    return new URL(origin).hostname.replace(/^\[(.*)\]$/, '$1').toLowerCase();
  } catch {
    return null;
  }
}
