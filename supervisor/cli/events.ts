import { Command } from 'commander';
import { AgentdError } from '../../protocol/errors.ts';
import { LOG_LEVELS } from '../../protocol/event-line.ts';
import { type ConnectionFlags, connectionOptions, sourcesOf } from '../console/connection-flags.ts';
import type { EventSink } from './event-stream.ts';
import type { Host, VerbAction } from './host.ts';

interface EventsFlags extends ConnectionFlags {
  readonly follow?: true;
  readonly json?: true;
  readonly level?: string;
  readonly event?: string;
}

/** `agentd events`: the log lines of running instances, as their management surface serves them. */
export function eventsCommand(run: (action: VerbAction) => void): Command {
  return connectionOptions(new Command('events'))
    .description('show the events of running instances (agent://events)')
    .option('--follow', 'go on showing events as they happen, until interrupted')
    .option('--level <level>', `only this level and more severe ones: ${LOG_LEVELS.join(', ')}`)
    .option('--event <prefix,...>', 'only events whose name begins with one of these')
    .option('--json', 'one event a line as JSON')
    .action((flags: EventsFlags) => run((host) => showEvents(host, flags)));
}

async function showEvents(host: Host, flags: EventsFlags): Promise<number> {
  const level = LOG_LEVELS.find((known) => known === flags.level) ?? null;
  if (flags.level !== undefined && level === null) {
    throw new AgentdError('USAGE', `--level "${flags.level}" is not one of ${LOG_LEVELS.join(', ')}`);
  }
  const sources = sourcesOf(flags, host.env);
  const { streamEvents } = await import('./event-stream.ts');
  const { labelOf } = await import('../console/endpoint.ts');
  const { textLine } = await import('../telemetry/log-text.ts');
  const color = host.stdout.isTTY === true && (host.env.NO_COLOR ?? '') === '';
  const many = sources.length > 1;

  const sinkFor = (url: string): EventSink => ({
    line: (line) => {
      if (flags.json) host.stdout.write(`${JSON.stringify(many ? { instance_url: url, ...line } : line)}\n`);
      else host.stdout.write(`${many ? `${labelOf(url)} ` : ''}${textLine(line, color)}`);
    },
    note: (text) => void host.stderr.write(`agentd: ${text}\n`),
  });
  const stop = new AbortController();
  const stopListening = host.onSignal((signal) => {
    if (signal !== 'SIGHUP') stop.abort();
  });
  try {
    await Promise.all(
      sources.map((source) => {
        const filter = { level, prefixes: flags.event ?? null };
        return streamEvents(source, filter, flags.follow === true, sinkFor(source.url), stop.signal);
      }),
    );
    return 0;
  } finally {
    stop.abort();
    stopListening();
  }
}
