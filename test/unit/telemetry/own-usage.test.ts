import { describe, expect, it } from 'vitest';
import { OwnUsage } from '../../../supervisor/telemetry/own-usage.ts';

describe('what a process uses itself', () => {
  it('is a share of one core between readings, and memory as it is', () => {
    let [now, micros] = [0, 1_000_000];
    const usage = new OwnUsage({ now: () => now, cpuMicros: () => micros, rssBytes: () => 7 * now });
    now = 1_000;
    micros += 250_000;
    expect(usage.read()).toEqual({ pid: process.pid, cpu_percent: 25, rss_bytes: 7_000 });
    // Another reader a moment later: too short a time to say anything new.
    now = 1_010;
    micros += 10_000;
    expect(usage.read()).toMatchObject({ cpu_percent: 25, rss_bytes: 7_070 });
    now = 3_000;
    micros += 2_990_000;
    expect(usage.read()).toMatchObject({ cpu_percent: 150 });
    now = 63_000;
    expect(usage.read()).toMatchObject({ cpu_percent: 0 });
  });

  it('is the truth of this very process', () => {
    const usage = new OwnUsage();
    const end = performance.now() + 600;
    while (performance.now() < end) Math.sqrt(Math.random());
    const { cpu_percent: busy, rss_bytes: rss } = usage.read();
    expect(busy).toBeGreaterThan(0);
    expect(rss).toBeGreaterThan(10 * 1024 * 1024);
  });
});
