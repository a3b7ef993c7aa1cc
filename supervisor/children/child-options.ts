import type { CgroupLeaf } from './cgroup.ts';
import { DEFAULT_CHANNEL_LIMITS } from './channel.ts';
import type { ChildOptions } from './child-port.ts';
import type { ChildSupervisorOptions } from './supervisor-options.ts';
import type { SupervisorTimings } from './timings.ts';

/** What one child is started with. */
export function childOptions(
  options: ChildSupervisorOptions,
  its: {
    readonly timings: SupervisorTimings;
    readonly env: Readonly<Record<string, string>>;
    readonly cgroup: CgroupLeaf | null;
    readonly first: boolean;
  },
): ChildOptions {
  const { channelLimits, clock, command, log, telemetry } = options;
  return {
    ...its,
    command,
    clock,
    log,
    instance: telemetry.instance,
    aggregateLogs: telemetry.aggregateLogs === true,
    channelLimits: channelLimits ?? DEFAULT_CHANNEL_LIMITS,
  };
}
