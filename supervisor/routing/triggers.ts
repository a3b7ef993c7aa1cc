import { Cron } from 'croner';
import type { ScheduleConfig, ShardConfig } from '../config/config.ts';
import { inShard } from '../gates/shard-gate.ts';
import type { Clock } from '../reactor/clock.ts';
import type { Timers } from '../reactor/timers.ts';

/**
 * The clock of `schedule` mode. A tick has a key that every replica computes alike, from the time
 * it was due: so with `keyed` timers exactly one shard takes each tick, and with `shard0` the first
 * shard takes all.
 */
export class ClockTrigger {
  private stopped = false;

  /** @param fire called with the key of each tick that is ours */
  constructor(
    private readonly schedule: ScheduleConfig,
    private readonly shard: ShardConfig,
    private readonly clock: Clock,
    private readonly timers: Timers,
    private readonly fire: (key: string) => void,
  ) {}

  start(): void {
    this.arm(this.clock.wall());
  }

  stop(): void {
    this.stopped = true;
    this.timers.clear('clock');
  }

  /** @param after epoch ms: the tick that fired last, so that a timer that fires early repeats none */
  private arm(after: number): void {
    const due = nextTick(this.schedule, after);
    if (due === null) return;
    const delay = Math.max(0, due - this.clock.wall());
    this.timers.set('clock', this.clock.now() + delay, () => {
      if (this.stopped) return;
      const key = `clock:${new Date(due).toISOString()}`;
      if (takesTick(this.shard, key)) this.fire(key);
      // A late tick fires once; those missed meanwhile are skipped, not caught up on.
      this.arm(Math.max(due, this.clock.wall() - 1));
    });
  }
}

/** When the schedule is next due after `after`, both epoch ms; null when it never is again. */
export function nextTick(schedule: ScheduleConfig, after: number): number | null {
  if (schedule.cron !== null) {
    const next = new Cron(schedule.cron, { timezone: 'UTC', paused: true }).nextRun(new Date(after));
    return next === null ? null : next.getTime();
  }
  if (schedule.intervalMs === null) return null;
  // Aligned to the epoch, so that replicas agree on each tick's key.
  return (Math.floor(after / schedule.intervalMs) + 1) * schedule.intervalMs;
}

/** Whether this shard takes a tick. */
export function takesTick(shard: ShardConfig, key: string): boolean {
  return shard.timer === 'shard0' ? shard.index === 0 : inShard(key, shard.index, shard.count);
}
