import type { Clock } from '../reactor/clock.ts';
import type { Log } from '../telemetry/log.ts';
import type { Child } from './child.ts';
import type { Health } from './liveness.ts';
import { readStat } from './proc.ts';
import type { StopCause } from './run.ts';
import { type Usage, UsageSampler } from './usage.ts';

export interface ProcessWatchOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly sampleMs: number;
}

/** What the kernel says of the children: their memory cap, and the evidence when one is stuck. */
export class ProcessWatch {
  private readonly sampler = new UsageSampler();
  private sampledAt = Number.NEGATIVE_INFINITY;

  constructor(private readonly options: ProcessWatchOptions) {}

  /** Samples the children that work, when it is time; ends those over the cap. */
  tick(children: Iterable<Child>): void {
    const now = this.options.clock.now();
    if (now - this.sampledAt < this.options.sampleMs) return;
    this.sampledAt = now;
    const byPid = new Map<number, Child>();
    for (const child of children) {
      if (child.run !== null && child.pid !== null && !child.process.leaderGone) byPid.set(child.pid, child);
    }
    void this.sampler.sample([...byPid.keys()]).then((usage) => {
      for (const [pid, { rssBytes }] of usage) {
        const child = byPid.get(pid);
        const cap = child?.run?.memoryMaxBytes ?? null;
        if (cap !== null && rssBytes > cap)
          child?.convict('memory', `it used ${rssBytes} bytes of memory; the cap is ${cap}`);
      }
    });
  }

  /** What a process was last seen to use; null before its first sample. */
  usageOf(pid: number): Usage | null {
    return this.sampler.of(pid);
  }

  /** Writes down why a child is being ended against its will, and what was seen of it. */
  report(child: Child, cause: StopCause, health: Health): void {
    const log = child.run?.log ?? this.options.log;
    const { pid } = child;
    const usage = pid === null ? null : this.sampler.of(pid);
    log.warn('subagent.stuck', {
      cause,
      health,
      pid_child: pid,
      process_state: pid === null ? null : (readStat(pid)?.state ?? null),
      rss_bytes: usage?.rssBytes ?? null,
      cpu_percent: usage === null ? null : Math.round(usage.cpuPercent),
      stray_lines: child.garbageCount,
    });
  }
}
