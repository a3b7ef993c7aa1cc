import { isDeepStrictEqual } from 'node:util';
import type { ChildSupervisor } from '../children/child-supervisor.ts';
import type { ChildSettings } from '../children/supervisor-options.ts';
import type { Config } from '../config/config.ts';
import type { ConfigInForce } from '../config/in-force.ts';
import type { ReloadChanges } from '../config/reload.ts';
import { capacityOf } from '../gates/admission-gate.ts';
import type { Intelligence } from '../intelligence/intelligence.ts';
import type { Clock } from '../reactor/clock.ts';
import type { Intake } from '../routing/intake.ts';
import type { Reactions } from '../routing/reactions.ts';
import type { Sessions } from '../routing/sessions.ts';
import type { LogSink } from '../telemetry/logger.ts';
import type { Connections, PreparedServers } from './connections.ts';
import { withStandbyRoute } from './standby-member.ts';

/** What the children are told of the configuration. */
export function childSettings({ limits, identity, observability }: Config): ChildSettings {
  const { logLevel, logContent, aggregateLogs } = observability;
  return { limits, telemetry: { instance: identity.instance, logLevel, logContent, aggregateLogs } };
}

/** Idle children to keep ready. A standby member keeps one for every slot it can fill, no more. */
export function warmTarget({ limits, standby }: Config, { lanes }: Pick<Intake, 'lanes'>): number {
  if (standby === null) return limits.warmChildren;
  const slots = capacityOf(
    lanes.map(({ route }) => route.config.maxInflight),
    limits.maxTotalSubagents,
  );
  return Math.min(limits.warmChildren, slots);
}

/** What a reload reaches into. */
export interface ReloadTargets {
  readonly settings: ConfigInForce;
  readonly log: LogSink;
  readonly clock: Clock;
  readonly children: ChildSupervisor;
  readonly intelligence: Intelligence;
  readonly links: Connections;
  readonly intake: Intake;
  readonly reactions: Reactions;
  readonly sessions: Sessions;
}

/**
 * Puts another configuration into force, in one go on the reactor. What is under way finishes on what
 * it began with: its route, limits, model and server connections.
 */
export function applyReload(
  targets: ReloadTargets,
  to: Config,
  { parts, servers }: ReloadChanges,
  prepared: PreparedServers,
): void {
  const { settings, log, clock, children, intelligence, links, intake, reactions, sessions } = targets;
  const from = settings.current();
  const underWay = new Set([...reactions.ids, ...children.runs.map(({ rootRunId }) => rootRunId)]);
  settings.replace(to);
  log.setLevel(to.observability.logLevel);
  if (!isDeepStrictEqual(from.intelligence.endpoints, to.intelligence.endpoints)) {
    intelligence.reset(from.intelligence.endpoints.length);
  }
  children.configure(childSettings(to));
  const hasNewOwner = intake.reroute(withStandbyRoute(to).routes, clock.now());
  children.setWarmTarget(warmTarget(to, intake));
  prepared.commit(underWay);
  // What no route took before, or another one, was never announced to the one that takes it now.
  links.reread(hasNewOwner);
  const toolsMoved = servers.changed.length + servers.removed.length > 0;
  const taskMoved = parts.has('agent.instruction') || parts.has('agent.output_contract');
  const routes = new Set(intake.lanes.map(({ route }) => route.config));
  sessions.outdate((route) => toolsMoved || taskMoved || !routes.has(route));
}
