import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { VerbAction } from '../../../supervisor/cli/host.ts';
import { resultsCommand } from '../../../supervisor/cli/results.ts';
import { durationText } from '../../../supervisor/telemetry/duration-text.ts';
import { runReportOf } from '../../../supervisor/telemetry/run-reports.ts';
import { eventually } from '../../helpers/eventually.ts';
import { type FakeHost, fakeHost } from '../../helpers/fake-host.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'agentd-results-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function results(host: FakeHost, ...args: string[]): Promise<number> {
  let action: VerbAction | undefined;
  resultsCommand((chosen) => {
    action = chosen;
  }).parse(args, { from: 'user' });
  if (action === undefined) throw new Error('no action');
  return action(host);
}

function put(name: string, runId: string, status: 'completed' | 'deadline' = 'completed'): string {
  const path = join(folder, name);
  const report = runReportOf({
    runId,
    instance: null,
    mode: 'once',
    status,
    exitCode: status === 'completed' ? 0 : 124,
    hasUsablePartial: status === 'deadline',
    usage: { tokens_in: 1200, tokens_out: 34, steps: 3, subagents: 0 },
    durationMs: 65_000,
    endedAt: Date.UTC(2026, 0, 1),
    traceId: null,
    refusals: {},
  });
  writeFileSync(path, JSON.stringify(report));
  return path;
}

describe('agentd results', () => {
  it('shows the reports of files and folders as one table', async () => {
    put('b.json', 'RUN-B', 'deadline');
    put('a.json', 'RUN-A');
    writeFileSync(join(folder, 'notes.txt'), 'no report');
    const host = fakeHost({ cwd: folder });
    expect(await results(host, '.')).toBe(0);
    const [header, ...rows] = host.out().trimEnd().split('\n');
    expect(header).toMatch(/^RUN +STATUS +EXIT/);
    expect(rows).toEqual([
      expect.stringMatching(/^RUN-A +completed +0 +once +3 +1200 +34 +0 +1m05s +2026-01-01T00:00:00Z$/),
      expect.stringMatching(/^RUN-B +deadline\* +124 /),
    ]);
  });

  it('prints one JSON object a line with --json', async () => {
    const host = fakeHost();
    expect(await results(host, '--json', put('a.json', 'RUN-A'))).toBe(0);
    expect(JSON.parse(host.out())).toMatchObject({ run_id: 'RUN-A', report_schema: '1.0' });
  });

  it('names files that are no report and ends with 1, showing the others', async () => {
    const bad = join(folder, 'bad.json');
    writeFileSync(bad, '{');
    const host = fakeHost();
    expect(await results(host, bad, put('a.json', 'RUN-A'))).toBe(1);
    expect(host.out()).toContain('RUN-A');
    expect(host.err()).toBe(`agentd: ${bad}: not JSON\n`);
  });

  it('is a usage error for a path that does not exist', async () => {
    await expect(results(fakeHost({ cwd: folder }), 'absent')).rejects.toMatchObject({
      code: 'USAGE',
      exitCode: 2,
    });
  });

  it('follows reports as they are written and replaced, until interrupted', async () => {
    const host = fakeHost({ cwd: folder });
    const done = results(host, '--follow', '.', 'later.json');
    put('a.json', 'RUN-A');
    await eventually('the first report', () => host.out().includes('RUN-A'));
    put('a.json', 'RUN-A2');
    await eventually('the replaced report', () => host.out().includes('RUN-A2'));
    host.signal('SIGHUP');
    host.signal('SIGINT');
    expect(await done).toBe(0);
    expect(host.out().match(/^RUN /gm)).toHaveLength(1);
    expect(host.listening()).toBe(0);
  });

  it('writes durations as people read them', () => {
    expect([840, 12_340, 245_000, 7_620_000].map(durationText)).toEqual([
      '840 ms',
      '12.3 s',
      '4m05s',
      '2h07m',
    ]);
  });
});
