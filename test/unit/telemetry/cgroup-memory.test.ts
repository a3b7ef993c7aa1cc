import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { publishCgroupMemory, readCgroupMemory } from '../../../supervisor/telemetry/cgroup-memory.ts';
import { createMetrics } from '../../../supervisor/telemetry/metrics-exporter.ts';

let mount: string;
let membership: string;
beforeEach(() => {
  mount = mkdtempSync(join(tmpdir(), 'agentd-cgroup-'));
  membership = join(mount, 'membership');
});
afterEach(() => rmSync(mount, { recursive: true, force: true }));

function group(path: string, max: string | null, current: string): void {
  mkdirSync(join(mount, path), { recursive: true });
  if (max !== null) writeFileSync(join(mount, path, 'memory.max'), `${max}\n`);
  writeFileSync(join(mount, path, 'memory.current'), `${current}\n`);
}

function read(lines: string) {
  writeFileSync(membership, lines);
  return readCgroupMemory(mount, membership);
}

describe('memory of the cgroup', () => {
  it('is what the tightest limit on the way up and its group say', () => {
    group('/a.slice', '4096', '900');
    group('/a.slice/b.service', '1000', '800');
    group('/a.slice/b.service/leaf', 'max', '100');
    expect(read('0::/a.slice/b.service/leaf\n')).toEqual({ maxBytes: 1000, currentBytes: 800 });
  });

  it('is our own use where nothing is limited', () => {
    group('/a', 'max', '123');
    expect(read('0::/a\n')).toEqual({ maxBytes: null, currentBytes: 123 });
  });

  it('is found at the root of a container, beside v1 hierarchies', () => {
    group('/', '2048', '7');
    expect(read('4:memory:/docker/x\n0::/\n')).toEqual({ maxBytes: 2048, currentBytes: 7 });
  });

  it('is unknown without cgroup v2, and then the gauges are absent', async () => {
    const unknown = { maxBytes: null, currentBytes: null };
    expect(read('4:memory:/docker/x\n')).toEqual(unknown);
    expect(read('0::/../outside\n')).toEqual(unknown);
    expect(readCgroupMemory(mount, join(mount, 'absent'))).toEqual(unknown);
    const metrics = createMetrics();
    publishCgroupMemory(metrics, unknown);
    expect(await metrics.render()).not.toMatch(/^agent_memory/m);
    publishCgroupMemory(metrics, { maxBytes: 5, currentBytes: 4 });
    expect(await metrics.render()).toMatch(/^agent_memory_current_bytes 4$/m);
  });
});
