import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { EXIT, exitCodeFor } from '../../../protocol/exit-codes.ts';
import { type RunReport, runReport } from '../../../protocol/run-report.ts';
import { TERMINAL_STATUSES, type TerminalStatus } from '../../../protocol/terminal-status.ts';
import { Binary, runBinary } from '../support/binary.ts';
import { expectContractLines } from '../support/lines.ts';
import { schemaProblems } from '../support/schemas.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** Each terminal status from a real one-shot run: report, exit code and standard output agree. */
const folder = temporaryFolder();
const ASK = { tool: { name: 'subagent_status', arguments: { handle: '0.9' } } };

interface Case {
  readonly name: string;
  readonly turns: readonly Record<string, unknown>[];
  readonly flags?: readonly string[];
  readonly status: TerminalStatus;
  readonly partial?: true;
  readonly code: number;
  readonly stdout?: string;
}

const CASES: readonly Case[] = [
  {
    name: 'completed',
    turns: [{ final: 'the answer', tokens: { in: 30, out: 12 } }],
    status: 'completed',
    code: EXIT.OK,
    stdout: 'the answer\n',
  },
  {
    name: 'refused',
    turns: [{ refuse: 'no such customer' }],
    status: 'refused',
    code: EXIT.SEMANTIC,
    stdout: 'no such customer\n',
  },
  {
    name: 'out of steps',
    turns: [ASK, { ...ASK, tool: { ...ASK.tool, arguments: { handle: '0.8' } } }],
    flags: ['--max-steps', '2'],
    status: 'exhausted_steps',
    code: EXIT.BUDGET,
  },
  {
    name: 'out of steps with a partial',
    turns: [{ text: 'so far' }, { text: 'so far, more' }],
    flags: ['--max-steps', '2'],
    status: 'exhausted_steps',
    partial: true,
    code: EXIT.PARTIAL,
    stdout: 'so far, more\n',
  },
  {
    name: 'out of tokens',
    turns: [{ ...ASK, tokens: { in: 500, out: 1 } }],
    flags: ['--max-tokens', '100'],
    status: 'exhausted_tokens',
    code: EXIT.BUDGET,
  },
  {
    name: 'out of tokens with a partial',
    turns: [{ text: 'half of it', tokens: { in: 500, out: 1 } }],
    flags: ['--max-tokens', '100'],
    status: 'exhausted_tokens',
    partial: true,
    code: EXIT.PARTIAL,
    stdout: 'half of it\n',
  },
  {
    name: 'past its deadline',
    turns: [{ hang: true }],
    flags: ['--deadline', '1s'],
    status: 'deadline',
    code: EXIT.TIMEOUT,
  },
  {
    name: 'stalled',
    turns: [{ malformed: 'empty', repeat: 'forever' }],
    status: 'stalled',
    code: EXIT.FAILURE,
  },
  {
    name: 'stalled with a partial',
    turns: [{ text: 'well', repeat: 'forever' }],
    status: 'stalled',
    partial: true,
    code: EXIT.PARTIAL,
    stdout: 'well\n',
  },
  { name: 'in a loop', turns: [{ loop: ASK.tool }], status: 'loop_detected', code: EXIT.FAILURE },
  {
    name: 'in a loop with a partial',
    turns: [{ text: 'first thoughts' }, { loop: ASK.tool }],
    status: 'loop_detected',
    partial: true,
    code: EXIT.PARTIAL,
    stdout: 'first thoughts\n',
  },
  { name: 'crashed', turns: [{ crash: 0 }], status: 'crashed', code: EXIT.FAILURE },
  { name: 'killed', turns: [{ crash: 'SIGKILL' }], status: 'crashed', code: EXIT.FAILURE },
  { name: 'without a model', turns: [{ fail: 'unreachable' }], status: 'crashed', code: EXIT.INTELLIGENCE },
  {
    name: 'with a refused credential',
    turns: [{ fail: 'auth' }],
    status: 'crashed',
    code: EXIT.INTELLIGENCE,
  },
];

function playbook(turns: readonly Record<string, unknown>[]): string {
  return `script:${folder.file(`${Math.random()}.yaml`, stringify({ turns }))}`;
}

function readReport(path: string): RunReport {
  const document: unknown = JSON.parse(readFileSync(path, 'utf8'));
  expect(schemaProblems('run_report', document)).toEqual([]);
  // Nothing beside what the contract names, and nothing null.
  expect(runReport.parse(document)).toEqual(document);
  expect(JSON.stringify(document)).not.toContain('null');
  return runReport.parse(document);
}

describe('a one-shot run', () => {
  it.each(CASES)(
    'that is $name: its exit code and its report',
    async ({ name, turns, flags, status, partial, code, stdout }) => {
      const path = folder.path(`${name}.json`);
      const run = await runBinary(
        [
          'run',
          'do it',
          '--intelligence',
          playbook(turns),
          '--report-file',
          path,
          '--run-id',
          'R1',
          ...(flags ?? []),
        ],
        { AGENT_TRACEPARENT: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01' },
      );
      expect(run.exit).toEqual({ code, signal: null });
      expect(run.stdout).toBe(stdout ?? '');
      expectContractLines(run);
      expect(run.words).toEqual([]);
      const report = readReport(path);
      expect(report).toMatchObject({
        run_id: 'R1',
        mode: 'once',
        status,
        exit_code: code,
        has_usable_partial: partial === true,
        trace_id: '4bf92f3577b34da6a3ce929d0e0e4736',
      });
      expect(Date.parse(report.ended_at) - Date.parse(report.started_at)).toBe(report.duration_ms);
      const lost = code === EXIT.INTELLIGENCE;
      expect(exitCodeFor({ status, hasUsablePartial: partial === true, intelligenceFailed: lost })).toBe(
        code,
      );
      expect(run.named('proc.exit')).toMatchObject([{ exit_code: code }]);
      // One trace from the caller to the last line.
      expect(new Set(run.lines.map((line) => line.trace_id))).toEqual(new Set([report.trace_id]));
    },
  );

  it('has an example of every terminal status but the one a drain gives', () => {
    const seen = new Set(CASES.map(({ status }) => status));
    expect(TERMINAL_STATUSES.filter((status) => !seen.has(status))).toEqual(['cancelled']);
  });

  it('that is drained ends with 0 and a cancelled report', async () => {
    const path = folder.path('drained.json');
    const run = new Binary([
      'run',
      'do it',
      '--intelligence',
      playbook([{ hang: true }]),
      '--report-file',
      path,
      '--drain-timeout',
      '2s',
    ]);
    await run.line('the loop', ({ event }) => event === 'loop.start');
    run.kill('SIGTERM');
    expect(await run.ended).toEqual({ code: EXIT.OK, signal: null });
    expect(readReport(path)).toMatchObject({ status: 'cancelled', exit_code: 0 });
    expectContractLines(run);
    expect(run.named('drain.start')).toMatchObject([{ cause: 'SIGTERM' }]);
  });

  it('that is told twice ends by SIGTERM, with 143 in its report', async () => {
    const path = folder.path('forced.json');
    const run = new Binary([
      'run',
      'do it',
      '--intelligence',
      playbook([{ spin: true }]),
      '--report-file',
      path,
    ]);
    await run.line('the loop', ({ event }) => event === 'loop.start');
    run.kill('SIGTERM');
    // Signals within 100 ms are one request: the second is told apart by time alone.
    const told = performance.now();
    await run.line('the drain', ({ event }) => event === 'drain.start');
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, 250 - (performance.now() - told))));
    run.kill('SIGTERM');
    expect(await run.ended).toEqual({ code: null, signal: 'SIGTERM' });
    expect(readReport(path)).toMatchObject({ status: 'cancelled', exit_code: EXIT.FORCED });
    expect(run.named('proc.exit')).toMatchObject([{ exit_code: 143 }]);
    expectContractLines(run);
  });

  it('omits a trace that was given badly and begins one of its own', async () => {
    const path = folder.path('traced.json');
    const run = await runBinary([
      'run',
      'x',
      '--intelligence',
      'script:final',
      '--report-file',
      path,
      '--traceparent',
      '00-0000-bad-01',
    ]);
    expect(run.exit.code).toBe(0);
    const report = readReport(path);
    expect(report.trace_id).toMatch(/^(?!0+$)[0-9a-f]{32}$/);
    expect(new Set(run.lines.map((line) => line.trace_id))).toEqual(new Set([report.trace_id]));
  });

  it('counts in its report what policy refused', async () => {
    const path = folder.path('refusals.json');
    const forged = JSON.stringify({
      jsonrpc: '2.0',
      id: 7_000_001,
      method: 'tool.call',
      params: { run_id: '{{run_id}}', name: 'nobody__tool', arguments: {}, timeout_ms: 1_000 },
    });
    const turns = [{ garbage: forged }, { sleep: 300 }, { final: 'tried' }];
    const run = await runBinary(['run', 'x', '--intelligence', playbook(turns), '--report-file', path]);
    expect(run.exit.code).toBe(0);
    expect(readReport(path).refusals).toEqual({ trifecta: 0, rate: 0, budget: 0, depth: 0, mcp: 1 });
  });
});

describe('a report that cannot be written', () => {
  it.each([
    ['in a folder that is not there', () => folder.path('nowhere/report.json'), 'ENOENT'],
    ['over a folder', () => folder.folder('a-folder'), 'EISDIR'],
    // A link, so that not even a broken build could replace the device itself.
    ['on a full disk', () => folder.link('full', '/dev/full'), 'ENOSPC'],
  ])('%s is a warning and leaves the exit code as it is', async (_where, place, type) => {
    const path = place();
    const run = await runBinary([
      'run',
      'x',
      '--intelligence',
      playbook([{ refuse: 'no' }]),
      '--report-file',
      path,
    ]);
    expect(run.exit).toEqual({ code: EXIT.SEMANTIC, signal: null });
    expect(run.stdout).toBe('no\n');
    expect(run.named('report.write.fail')).toMatchObject([{ level: 'warn', err: { type }, path }]);
    expect(run.named('report.written')).toEqual([]);
    expectContractLines(run);
  });

  it('because the mode is reactive was never meant to be: a warning says so, and no file appears', async () => {
    const path = folder.path('reactive.json');
    const daemon = new Binary([
      'supervise',
      '--interval',
      '1h',
      '--instruction',
      'x',
      '--intelligence',
      'script:final',
      '--report-file',
      path,
    ]);
    await daemon.ready();
    expect(daemon.named('config.warn')).toMatchObject([
      { level: 'warn', msg: expect.stringContaining('report_file') },
    ]);
    expect(await daemon.stop()).toEqual({ code: 0, signal: null });
    expect(existsSync(path)).toBe(false);
    expectContractLines(daemon);
  });
});
