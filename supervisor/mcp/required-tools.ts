import { AgentdError } from '../../protocol/errors.ts';
import { REQUIRED_WORK_TOOLS } from '../../protocol/work-tools.ts';
import type { Config } from '../config/config.ts';
import type { Peers } from './peers.ts';

/** The compare-and-set tool the resource style of claiming is built on. */
export const LEASE_CAS = 'lease.cas';

/** What a coordination server must list, by style of claim (contract, section 9). */
export function toolsForStyle(style: 'tool' | 'resource'): readonly string[] {
  return style === 'tool' ? REQUIRED_WORK_TOOLS : [LEASE_CAS];
}

/**
 * Refuses a coordination server that is up but cannot do what a claim route needs. One that is down
 * is not judged: it is exit 6 at start, and retried later.
 *
 * @throws AgentdError COORDINATION_WITHOUT_WORK_TOOLS (exit 2) naming server and missing tools
 */
export function requireTools(peers: Pick<Peers, 'get'>, server: string, names: readonly string[]): void {
  const peer = peers.get(server);
  if (peer === undefined) {
    throw new AgentdError('CONFIG_INVALID', `a claim route names server ${server}, which is not configured`);
  }
  if (peer.state !== 'live') return;
  const missing = names.filter((name) => !peer.toolNames.includes(name));
  if (missing.length === 0) return;
  const list = missing.join(', ');
  throw new AgentdError(
    'COORDINATION_WITHOUT_WORK_TOOLS',
    `coordination server ${server} is up but does not list ${list}, which its claim route needs`,
  );
}

/**
 * Refuses every coordination server of a configuration that is up and cannot do its part.
 *
 * @throws AgentdError COORDINATION_WITHOUT_WORK_TOOLS (exit 2)
 */
export function requireWorkTools(peers: Pick<Peers, 'get'>, { standby, routes }: Config): void {
  if (standby !== null) requireTools(peers, standby.assignFrom.server, toolsForStyle('tool'));
  for (const { claim } of routes) {
    if (claim !== null) requireTools(peers, claim.server, toolsForStyle(claim.style));
  }
}
