import { Command } from 'commander';
import { AgentdError } from '../../protocol/errors.ts';
import { LOG_LEVELS } from '../../protocol/event-line.ts';
import { readSecret } from '../config/secret.ts';
import type { EventSink, EventSource } from './event-stream.ts';
import type { Host, VerbAction } from './host.ts';

interface EventsFlags {
  readonly url: string[];
  readonly follow?: true;
  readonly json?: true;
  readonly level?: string;
  readonly event?: string;
  readonly bearerFile?: string;
  readonly tlsCa?: string;
  readonly cert?: string;
  readonly key?: string;
}

/** `agentd events`: the log lines of running instances, as their management surface serves them. */
export function eventsCommand(run: (action: VerbAction) => void): Command {
  return new Command('events')
    .description('show the events of running instances (agent://events)')
    .requiredOption('--url <url...>', 'management surface of an instance (--serve-mcp); may be repeated')
    .option('--follow', 'go on showing events as they happen, until interrupted')
    .option('--level <level>', `only this level and more severe ones: ${LOG_LEVELS.join(', ')}`)
    .option('--event <prefix,...>', 'only events whose name begins with one of these')
    .option('--json', 'one event a line as JSON')
    .option('--bearer-file <path>', 'file of the bearer token to present')
    .option('--tls-ca <path>', 'PEM file of extra certificate authorities')
    .option('--cert <path>', 'PEM file of the client certificate to present')
    .option('--key <path>', 'PEM file of its key')
    .action((flags: EventsFlags) => run((host) => showEvents(host, flags)));
}

async function showEvents(host: Host, flags: EventsFlags): Promise<number> {
  const level = LOG_LEVELS.find((known) => known === flags.level) ?? null;
  if (flags.level !== undefined && level === null) {
    throw new AgentdError('USAGE', `--level "${flags.level}" is not one of ${LOG_LEVELS.join(', ')}`);
  }
  if ((flags.cert === undefined) !== (flags.key === undefined)) {
    throw new AgentdError('USAGE', '--cert and --key belong together');
  }
  const bearer =
    flags.bearerFile === undefined ? null : readSecret({ secret: 'file', path: flags.bearerFile }, host.env);
  const { streamEvents } = await import('./event-stream.ts');
  const { textLine } = await import('../telemetry/log-text.ts');
  const color = host.stdout.isTTY === true && (host.env.NO_COLOR ?? '') === '';
  const many = flags.url.length > 1;

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
      flags.url.map((url) => {
        const source: EventSource = {
          url,
          bearer,
          tls: { ca: flags.tlsCa ?? null, cert: flags.cert ?? null, key: flags.key ?? null },
        };
        const filter = { level, prefixes: flags.event ?? null };
        return streamEvents(source, filter, flags.follow === true, sinkFor(url), stop.signal);
      }),
    );
    return 0;
  } finally {
    stop.abort();
    stopListening();
  }
}

/** Which of several instances a line is from. */
function labelOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : url;
}
