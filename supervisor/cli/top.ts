import { Command } from 'commander';
import { AgentdError } from '../../protocol/errors.ts';
import { type ConnectionFlags, connectionOptions, sourcesOf } from '../console/connection-flags.ts';
import type { Watched } from '../console/top/frame.ts';
import type { Host, VerbAction } from './host.ts';

interface TopFlags extends ConnectionFlags {
  readonly once?: true;
  readonly interval: string;
}

/** Shorter is no use to the eye and a burden on the instance, ms. */
const LEAST_INTERVAL_MS = 100;

/** `agentd top`: what instances do, live. */
export function topCommand(run: (action: VerbAction) => void): Command {
  return connectionOptions(new Command('top'))
    .description('show live what instances do: gates, claims, backlog, tokens, CPU and memory, agents')
    .option('--once', 'print one frame and end (what happens anyway where there is no terminal)')
    .option('--interval <duration>', 'how often to look', '1s')
    .action((flags: TopFlags) => run((host) => top(host, flags)));
}

async function top(host: Host, flags: TopFlags): Promise<number> {
  const { parseDuration } = await import('../config/quantities.ts');
  const intervalMs = parseDuration(flags.interval);
  if (intervalMs === null || intervalMs < LEAST_INTERVAL_MS) {
    throw new AgentdError('USAGE', `--interval "${flags.interval}" is no duration of at least 100ms`, {
      remedy: 'Write 500ms, 2s or plain seconds.',
    });
  }
  return flags.once === true || host.stdout.isTTY !== true
    ? printFrame(host, flags)
    : showLive(host, flags, intervalMs);
}

/** One frame; exit 1 when an instance could not be reached. */
async function printFrame(host: Host, flags: TopFlags): Promise<number> {
  const [{ eachInstance }, { lookAt }, { frameLines }, { paintFor }] = await Promise.all([
    import('../console/each-instance.ts'),
    import('../console/top/instance-watch.ts'),
    import('../console/top/frame.ts'),
    import('../console/style.ts'),
  ]);
  const { answers, exitCode } = await eachInstance(host, sourcesOf(flags, host.env), lookAt);
  host.stdout.write(`${frameLines(answers, paintFor(host.stdout, host.env)).join('\n')}\n`);
  return exitCode;
}

async function showLive(host: Host, flags: TopFlags, intervalMs: number): Promise<number> {
  const [{ watchInstance }, { openScreen }, { paintFor }] = await Promise.all([
    import('../console/top/instance-watch.ts'),
    import('../console/top/ink-screen.ts'),
    import('../console/style.ts'),
  ]);
  const sources = sourcesOf(flags, host.env);
  const stop = new AbortController();
  const stopListening = host.onSignal((signal) => {
    if (signal !== 'SIGHUP') stop.abort();
  });
  const latest: Watched[] = sources.map(({ url }) => ({ kind: 'waiting', url }));
  const screen = await openScreen({
    stdout: host.stdout,
    stdin: process.stdin,
    paint: paintFor(host.stdout, host.env),
  });
  screen.update(latest);
  const watching = sources.map((first, at) =>
    watchInstance(
      () => sourcesOf(flags, host.env)[at] ?? first,
      intervalMs,
      (watched) => {
        latest[at] = watched;
        screen.update([...latest]);
      },
      stop.signal,
    ),
  );
  const interrupted = new Promise<void>((resolve) => {
    stop.signal.addEventListener('abort', () => resolve(), { once: true });
  });
  try {
    // A watch ends by itself only when the command line is wrong; that is said after the screen is left.
    await Promise.race([screen.left, interrupted, Promise.all(watching)]);
    return 0;
  } finally {
    stop.abort();
    stopListening();
    await screen.close();
    await Promise.allSettled(watching);
  }
}
