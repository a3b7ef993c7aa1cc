import type { Config } from '../config/config.ts';
import { claimTarget } from '../gates/claim-target.ts';
import type { Clock } from '../reactor/clock.ts';
import type { SupervisorEvent } from '../reactor/event.ts';
import type { Supervisor } from '../reactor/supervisor.ts';
import type { Intake } from '../routing/intake.ts';
import type { Reactions } from '../routing/reactions.ts';
import { Standby, standbyRoute } from '../routing/standby.ts';
import type { Log } from '../telemetry/log.ts';
import { newTraceparent } from '../telemetry/trace.ts';
import type { Connections } from './connections.ts';

/** A standby member without routes of its own takes whatever it is given. */
export function withStandbyRoute(config: Config): Config {
  const { standby, routes } = config;
  if (standby === null || routes.length > 0) return config;
  return { ...config, routes: [standbyRoute(standby, sourceOf(config))] };
}

/** Items name no server: they are read from the first one that does not hand them out. */
function sourceOf({ mcpServers, standby }: Config): string {
  const coordinator = standby?.assignFrom.server ?? '';
  return mcpServers.find(({ name }) => name !== coordinator)?.name ?? coordinator;
}

/** The puller of a standby member; null outside standby. */
export function standbyMember(parts: {
  readonly config: Config;
  readonly clock: Clock;
  readonly log: Log;
  readonly links: Connections;
  readonly intake: Intake;
  readonly reactions: Reactions;
  readonly supervisor: () => Supervisor;
  readonly post: (event: SupervisorEvent) => void;
}): Standby | null {
  const { config, clock, log, links, intake, reactions, supervisor, post } = parts;
  const { standby } = config;
  if (standby === null) return null;
  const { server, uri: pendingUri } = standby.assignFrom;
  const source = sourceOf(config);
  /** The lane of an item, which may be routed from any server. */
  const laneOf = (uri: string) =>
    intake.laneOf(source, uri) ??
    config.mcpServers.map(({ name }) => intake.laneOf(name, uri)).find((lane) => lane !== null) ??
    null;
  return new Standby({
    clock,
    freeSlots: () => {
      const { capacity, inflight, pendingClaims } = supervisor().figures();
      return supervisor().mayLaunch() ? capacity - inflight - pendingClaims : 0;
    },
    claimNext: (max) => links.claimNext(server, standby.ttlMs, max),
    pending: () => links.pending(server, pendingUri),
    adopt: (item) => {
      const lane = laneOf(item.uri);
      const claim = {
        server,
        style: 'tool',
        ttlMs: standby.ttlMs,
        renewFraction: standby.renewFraction,
      } as const;
      const route = lane?.route.config.name ?? 'standby';
      const described = { server: source, uri: item.uri, route, info: null };
      const { target } = claimTarget({ ...claim, key: 'run_id' }, described, newTraceparent());
      const own = { ...target, claimKey: item.claimKey };
      if (lane === null) {
        log.warn('event.unrouted', { uri: item.uri, msg: `no route matches ${item.uri}: it is given back` });
        reactions.refuse(own, item, 'capacity: no route matches the item');
        return;
      }
      reactions.adopt(lane, lane.route.config.server ?? source, item, own);
    },
    race: (uri) => {
      const lane = laneOf(uri);
      return lane !== null && reactions.assign(lane, lane.route.config.server ?? source, uri);
    },
    pulled: () => post({ type: 'pump' }),
  });
}
