import { resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { Command } from 'commander';
import { AgentdError, errorMessage } from '../../protocol/errors.ts';
import type { Host, VerbAction } from './host.ts';

interface ResultsFlags {
  readonly follow?: true;
  readonly json?: true;
}

/** How often followed paths are looked at, ms. */
const LOOK_MS = 500;

/** `agentd results PATH…`: run reports as a table or as JSON lines. */
export function resultsCommand(run: (action: VerbAction) => void): Command {
  return new Command('results')
    .description('show run reports (--report-file) as a table')
    .argument('<path...>', 'report files, or folders of them')
    .option('--follow', 'go on showing reports as they are written, until interrupted')
    .option('--json', 'one report a line as JSON')
    .action((paths: string[], flags: ResultsFlags) => run((host) => showResults(host, paths, flags)));
}

/**
 * Exit 0 when every file is a report, else 1 with a line for each that is not.
 *
 * @throws AgentdError USAGE when a path does not exist (not while following: it may come)
 */
async function showResults(host: Host, paths: readonly string[], flags: ResultsFlags): Promise<number> {
  const [{ readReport, reportPaths }, { tableHeader, tableRow }] = await Promise.all([
    import('../telemetry/report-reader.ts'),
    import('./report-table.ts'),
  ]);
  const color = host.stdout.isTTY === true && (host.env.NO_COLOR ?? '') === '';
  const shown = new Map<string, string>();
  let problems = 0;
  let headed = flags.json === true;

  const look = (): void => {
    for (const path of paths.flatMap((given) => expand(resolve(host.cwd, given)))) {
      const file = readReport(path);
      if (shown.get(path) === file.stamp && file.stamp !== '') continue;
      shown.set(path, file.stamp);
      if ('problem' in file) {
        problems += 1;
        host.stderr.write(`agentd: ${path}: ${file.problem}\n`);
        continue;
      }
      if (!headed) host.stdout.write(`${tableHeader()}\n`);
      headed = true;
      host.stdout.write(`${flags.json ? JSON.stringify(file.report) : tableRow(file.report, color)}\n`);
    }
  };
  const expand = (path: string): string[] => {
    try {
      return reportPaths(path);
    } catch (error) {
      if (flags.follow) return [];
      throw new AgentdError('USAGE', `cannot read ${path}: ${errorMessage(error)}`, {
        cause: error,
        remedy: 'Name a file written with --report-file, or a folder of such files.',
      });
    }
  };

  look();
  if (!flags.follow) return problems === 0 ? 0 : 1;
  await untilSignal(host, async (stopped) => {
    while (!stopped.aborted) {
      await pause(LOOK_MS, undefined, { signal: stopped }).catch(() => undefined);
      look();
    }
  });
  return 0;
}

/** Runs `work` until SIGTERM or SIGINT aborts its signal. */
async function untilSignal(host: Host, work: (stopped: AbortSignal) => Promise<void>): Promise<void> {
  const stop = new AbortController();
  const stopListening = host.onSignal((signal) => {
    if (signal !== 'SIGHUP') stop.abort();
  });
  try {
    await work(stop.signal);
  } finally {
    stopListening();
  }
}
