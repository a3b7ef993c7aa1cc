import { claimKey } from '../../protocol/claim-key.ts';
import type { ClaimConfig } from '../config/config.ts';
import type { ResourceInfo } from '../mcp/peers.ts';
import type { ClaimTarget } from './lease-keeper.ts';

/** What of a resource a claim key may refer to. */
const PLACEHOLDER = /\{\{\s*(uri|route|server|last_modified|size)\s*\}\}/g;

/** Whether the key of this claim can only be known after the resource has been looked at. */
export function needsResourceInfo(claim: ClaimConfig): boolean {
  return /\{\{\s*(last_modified|size)\s*\}\}/.test(claim.key);
}

/** The run id and the claim of one item: the same on every replica, at every retry. */
export function claimTarget(
  claim: ClaimConfig,
  item: {
    readonly server: string;
    readonly uri: string;
    readonly route: string;
    readonly info: ResourceInfo | null;
  },
  traceparent: string,
): { readonly runId: string; readonly target: ClaimTarget } {
  const derived = claimKey(item.uri, item.route);
  const { runId, key } = ((): { runId: string; key: string } => {
    if (claim.key === 'run_id') return { runId: derived, key: derived };
    if (claim.key === 'item') return { runId: derived, key: item.uri };
    // Hashed, so that the run id keeps its shape whatever the expression yields.
    const own = claimKey(expand(claim.key, item), item.route);
    return { runId: own, key: own };
  })();
  return {
    runId,
    target: {
      server: claim.server,
      style: claim.style,
      item: item.uri,
      claimKey: key,
      traceparent,
      ttlMs: claim.ttlMs,
      renewFraction: claim.renewFraction,
    },
  };
}

function expand(
  template: string,
  item: {
    readonly server: string;
    readonly uri: string;
    readonly route: string;
    readonly info: ResourceInfo | null;
  },
): string {
  const values: Readonly<Record<string, string>> = {
    uri: item.uri,
    route: item.route,
    server: item.server,
    last_modified: item.info?.lastModified ?? '',
    size: item.info?.size?.toString() ?? '',
  };
  return template.replace(PLACEHOLDER, (_, name: string) => values[name] ?? '');
}
