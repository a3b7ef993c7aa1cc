import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { runAgentd } from '../../helpers/run-agentd.ts';

/** Real supervisors with real children that write on standard error. */
let folder = '';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'agentd-aggregate-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

async function run(playbook: string, ...args: string[]) {
  const file = join(folder, 'book.yaml');
  await writeFile(file, playbook);
  const ended = await runAgentd(['run', 'go', '--intelligence', `script:${file}`, ...args]);
  expect(ended.code).toBe(0);
  return ended.stderr.split('\n').filter((line) => line !== '');
}

const NOISY = 'turns: [ { flood_stderr: { bytes: 40000, line: 99 } }, { final: done } ]\n';

const FLOOD = 'turns: [ { flood_stderr: { bytes: 900000, line: 99 } }, { final: done } ]\n';

describe('--aggregate-logs', () => {
  it('shows every line a child writes, whole and under its path, between the events', async () => {
    const lines = await run(NOISY, '--aggregate-logs', '--log-format', 'text');
    const raw = lines.filter((line) => line.includes('│'));
    expect(raw.length).toBeGreaterThan(300);
    for (const line of lines) expect(line).toMatch(/^\d\d:\d\d:\d\d\.\d{3} ([A-Z]+ +| {6})0 +(│ .|[a-z]+\.)/);
    const lengths = new Set(raw.map((line) => line.length));
    expect(lengths.size).toBeLessThanOrEqual(2); // the last one may be shorter
  });

  it('carries them as JSON lines of the vocabulary otherwise', async () => {
    const lines = await run(NOISY, '--aggregate-logs', '--log-format', 'json');
    const parsed = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(parsed.filter(({ stream }) => stream === 'stderr').length).toBeGreaterThan(300);
  });

  it('bounds what one child may write and says what it dropped', async () => {
    const lines = await run(FLOOD, '--aggregate-logs', '--log-format', 'json');
    const parsed = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    const shown = parsed.filter(({ stream }) => stream === 'stderr').length;
    const dropped = parsed
      .filter(({ event, dropped }) => event === 'limit.exceeded' && typeof dropped === 'number')
      .reduce((sum, line) => sum + Number(line.dropped), 0);
    expect(shown).toBeLessThan(9_000);
    expect(dropped).toBeGreaterThan(0);
    expect(shown + dropped).toBeGreaterThanOrEqual(8_999);
  });

  it('is only a sample without it', async () => {
    const lines = await run(NOISY, '--log-format', 'text');
    expect(lines.filter((line) => line.includes('│')).length).toBeLessThan(300);
  });

  it('shows one subtree with --only, and the levels from --level on', async () => {
    expect(await run(NOISY, '--aggregate-logs', '--only', '0.7', '--log-format', 'text')).toEqual([]);
    const warnings = await run(FLOOD, '--aggregate-logs', '--level', 'warn', '--log-format', 'json');
    expect(warnings.length).toBeGreaterThan(0);
    for (const line of warnings) expect(JSON.parse(line)).toHaveProperty('level', 'warn');
  });
});
