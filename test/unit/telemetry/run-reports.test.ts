import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { runReport } from '../../../protocol/run-report.ts';
import { readReport } from '../../../supervisor/telemetry/report-reader.ts';
import { RecentReports } from '../../../supervisor/telemetry/reports.ts';
import { type RunFacts, RunReportFile, runReportOf } from '../../../supervisor/telemetry/run-reports.ts';
import { recordingLog } from '../../helpers/null-log.ts';

const facts: RunFacts = {
  runId: 'R1',
  instance: 'agent-0',
  mode: 'once',
  status: 'completed',
  exitCode: 0,
  hasUsablePartial: false,
  usage: { tokens_in: 10, tokens_out: 5, steps: 2, subagents: 1 },
  durationMs: 1500.4,
  endedAt: Date.UTC(2026, 0, 1, 0, 0, 10),
  traceId: 'a'.repeat(32),
  refusals: { budget: 2 },
};

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'agentd-report-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe('the run report', () => {
  it('matches its schema, omits what is absent and counts refusals that did not happen as 0', () => {
    expect(runReport.parse(runReportOf(facts))).toEqual(runReportOf(facts));
    expect(runReportOf(facts)).toMatchObject({
      duration_ms: 1500,
      started_at: '2026-01-01T00:00:08.500Z',
      ended_at: '2026-01-01T00:00:10.000Z',
      refusals: { trifecta: 0, rate: 0, budget: 2, depth: 0, mcp: 0 },
    });
    const bare = runReportOf({ ...facts, instance: null, traceId: null });
    expect(bare).not.toHaveProperty('instance');
    expect(bare).not.toHaveProperty('trace_id');
    expect(JSON.stringify(bare)).not.toContain('null');
  });

  it('is written once: the first terminal transition wins', () => {
    const path = join(folder, 'report.json');
    const { log, lines } = recordingLog();
    const file = new RunReportFile(path, log);
    file.write(runReportOf(facts));
    file.write(runReportOf({ ...facts, status: 'crashed' }));
    expect(JSON.parse(readFileSync(path, 'utf8'))).toEqual(runReportOf(facts));
    expect(readdirSync(folder)).toEqual(['report.json']);
    expect(lines.map((line) => line.event)).toEqual(['report.written']);
  });

  it('replaces an older report as a whole', () => {
    const path = join(folder, 'report.json');
    writeFileSync(path, 'x'.repeat(100_000));
    new RunReportFile(path, recordingLog().log).write(runReportOf(facts));
    expect(readReport(path)).toMatchObject({ report: runReportOf(facts) });
  });

  it('that cannot be written is a warning, leaves nothing behind and is not tried again', () => {
    mkdirSync(join(folder, 'taken'));
    for (const path of [join(folder, 'no/such/folder.json'), join(folder, 'taken'), '/proc/report.json']) {
      const { log, lines } = recordingLog();
      const file = new RunReportFile(path, log);
      expect(() => file.write(runReportOf(facts))).not.toThrow();
      file.write(runReportOf(facts));
      expect(lines.map((line) => [line.level, line.event])).toEqual([['warn', 'report.write.fail']]);
    }
    expect(readdirSync(folder)).toEqual(['taken']);
  });
});

describe('recent reports', () => {
  it('keep the newest, by run id', () => {
    const recent = new RecentReports(2);
    for (const runId of ['a', 'b', 'a', 'c']) recent.add(runReportOf({ ...facts, runId }));
    expect(recent.ids).toEqual(['a', 'c']);
    expect(recent.get('b')).toBeUndefined();
    expect(recent.get('c')?.run_id).toBe('c');
  });
});

describe('reading a report', () => {
  const problemOf = (text: string): unknown => {
    const path = join(folder, 'some.json');
    writeFileSync(path, text);
    return readReport(path);
  };

  it('accepts a newer minor version and what it does not know', () => {
    expect(problemOf(JSON.stringify({ ...runReportOf(facts), report_schema: '1.7', more: 1 }))).toMatchObject(
      {
        report: { report_schema: '1.7', run_id: 'R1' },
      },
    );
  });

  it('refuses a newer major version by name, and describes what is no report', () => {
    expect(problemOf(JSON.stringify({ ...runReportOf(facts), report_schema: '2.0' }))).toMatchObject({
      problem: 'report_schema "2.0" is not known here',
    });
    expect(problemOf('{"report_schema":"1.0"}')).toMatchObject({
      problem: expect.stringMatching(/^not a run report: run_id/),
    });
    expect(problemOf('[1]')).toMatchObject({ problem: 'not a run report' });
    expect(problemOf('')).toMatchObject({ problem: 'not JSON' });
    expect(readReport(join(folder, 'absent.json'))).toMatchObject({
      problem: expect.stringContaining('ENOENT'),
    });
  });
});
