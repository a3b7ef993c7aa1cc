import type { Config } from '../config/config.ts';
import type { Clock } from '../reactor/clock.ts';
import type { SupervisorEvent } from '../reactor/event.ts';
import type { Timers } from '../reactor/timers.ts';
import type { Log } from '../telemetry/log.ts';

export interface StartedTriggers {
  stop(): void;
}

/** Starts what runs without an event from outside: the root run, the clock. */
export async function startTriggers(parts: {
  readonly config: Config;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly log: Log;
  readonly post: (event: SupervisorEvent) => void;
}): Promise<StartedTriggers | null> {
  const { config, clock, timers, log, post } = parts;
  const { mode, schedule, shard } = config;
  if (mode === 'once' || mode === 'loop') {
    post({ type: 'root.due' });
    return null;
  }
  if (schedule === null) return null;
  // Loaded only where there is a clock: the cron parser is no part of every start.
  const { ClockTrigger } = await import('../routing/triggers.ts');
  const trigger = new ClockTrigger(schedule, shard, clock, timers, (key) => post({ type: 'clock', key }));
  trigger.start();
  log.info('trigger.armed', { trigger: schedule.cron ?? `every ${schedule.intervalMs} ms` });
  return trigger;
}
