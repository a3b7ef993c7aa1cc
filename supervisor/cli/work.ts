import { resolve } from 'node:path';
import { Command, Option } from 'commander';
import { AgentdError } from '../../protocol/errors.ts';
import { PRIORITIES } from '../../protocol/work-tools.ts';
import { parseDuration } from '../config/quantities.ts';
import type { WorkCaller } from '../coordination/work-caller.ts';
import type { Host, VerbAction } from './host.ts';

interface ServerFlags {
  readonly url?: string;
  readonly bearerFile?: string;
  readonly tlsCa?: string;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  readonly json?: true;
}

interface SubmitFlags extends ServerFlags {
  readonly claimKey?: string;
  readonly kind?: string;
  readonly tenant?: string;
  readonly priority?: string;
  readonly maxAttempts?: string;
  readonly delay?: string;
  readonly dependsOn?: readonly string[];
}

interface ListFlags extends ServerFlags {
  readonly state?: string;
  readonly limit: string;
}

type Call = (server: WorkCaller) => Promise<number>;
type Print = (value: Record<string, unknown>, human: string) => void;

const DEFAULT_URL = 'http://127.0.0.1:7411/mcp';
const STATES = ['submitted', 'ready', 'leased', 'done', 'dead_letter', 'cancelled'];
/** Records asked for at a time. */
const PAGE = 500;

/** `agentd work`: what a person asks of a coordination server. */
export function workCommand(run: (action: VerbAction) => void): Command {
  const work = new Command('work').description('submit and inspect work at a coordination server');
  work.addCommand(
    onServer(new Command('submit'))
      .description('add items to be worked on')
      .argument('<item...>', 'what the work is about, normally resource URIs')
      .option('--claim-key <key>', 'the key under which it is known (default: the item; one item only)')
      .option('--kind <kind>', 'kind of work, for workers that take only some')
      .option('--tenant <tenant>', 'whose work it is')
      .addOption(new Option('--priority <priority>', 'urgency').choices([...PRIORITIES]))
      .option('--max-attempts <n>', 'attempts before it is given up')
      .option('--delay <duration>', 'not before this time has passed')
      .option('--depends-on <id...>', 'work ids that must be done first')
      .action((items: string[], flags: SubmitFlags) => {
        const args = submitArguments(items, flags);
        run((host) => atServer(host, flags, (server) => submit(server, args, printer(host, flags))));
      }),
  );
  work.addCommand(
    onServer(new Command('list'))
      .description('show items, oldest first')
      .addOption(new Option('--state <state>', 'only items in this state').choices(STATES))
      .option('--limit <n>', 'how many at most', '100')
      .action((flags: ListFlags) => {
        const limit = positive('--limit', flags.limit);
        run((host) => atServer(host, flags, (server) => list(server, host, flags, limit)));
      }),
  );
  work.addCommand(
    onServer(new Command('show'))
      .description('show one item and its result')
      .argument('<id>', 'work id (the claim key)')
      .action((id: string, flags: ServerFlags) =>
        run((host) => atServer(host, flags, (server) => show(server, id, printer(host, flags)))),
      ),
  );
  for (const action of ['requeue', 'drop'] as const) {
    work.addCommand(
      onServer(new Command(action))
        .description(
          action === 'requeue' ? 'try dead letters again from the start' : 'cancel items that are not done',
        )
        .argument('<id...>', 'work ids (the claim keys)')
        .action((ids: string[], flags: ServerFlags) =>
          run((host) => atServer(host, flags, (server) => settle(server, action, ids, printer(host, flags)))),
        ),
    );
  }
  work.addCommand(
    onServer(new Command('stats'))
      .description('how much waits, is claimed, or has been given up')
      .action((flags: ServerFlags) =>
        run((host) => atServer(host, flags, (server) => stats(server, printer(host, flags)))),
      ),
  );
  return work;
}

function onServer(command: Command): Command {
  return command
    .option('--url <url>', `the coordination server [AGENT_COORDINATE_URL] (default: ${DEFAULT_URL})`)
    .option('--bearer-file <path>', 'file holding the token to present')
    .option('--tls-ca <path>', 'extra certificate authority, PEM')
    .option('--tls-cert <path>', 'client certificate, PEM')
    .option('--tls-key <path>', 'key of the client certificate, PEM')
    .option('--json', 'machine-readable output, one JSON object a line');
}

async function atServer(host: Host, flags: ServerFlags, call: Call): Promise<number> {
  const { WorkCaller } = await import('../coordination/work-caller.ts');
  const file = (path: string | undefined): string | null =>
    path === undefined ? null : resolve(host.cwd, path);
  const fromEnv = host.env.AGENT_COORDINATE_URL;
  const server = await WorkCaller.connect({
    url: flags.url ?? (fromEnv === undefined || fromEnv === '' ? DEFAULT_URL : fromEnv),
    bearerFile: file(flags.bearerFile),
    tlsCa: file(flags.tlsCa),
    tlsCert: file(flags.tlsCert),
    tlsKey: file(flags.tlsKey),
  });
  try {
    return await call(server);
  } finally {
    await server.close();
  }
}

function printer(host: Host, flags: ServerFlags): Print {
  return (value, human) => host.stdout.write(`${flags.json === true ? JSON.stringify(value) : human}\n`);
}

function submitArguments(items: readonly string[], flags: SubmitFlags): readonly Record<string, unknown>[] {
  if (flags.claimKey !== undefined && items.length > 1) {
    throw new AgentdError('USAGE', '--claim-key names one item, but several were given');
  }
  const delayMs = flags.delay === undefined ? undefined : parseDuration(flags.delay);
  if (delayMs === null)
    throw new AgentdError('USAGE', `--delay "${flags.delay}" is not a duration such as 30s or 5m`);
  const attempts =
    flags.maxAttempts === undefined ? undefined : positive('--max-attempts', flags.maxAttempts);
  const given = {
    claim_key: flags.claimKey,
    kind: flags.kind,
    tenant: flags.tenant,
    priority: flags.priority,
    max_attempts: attempts,
    delay_ms: delayMs,
    depends_on: flags.dependsOn,
  };
  const common = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  return items.map((item) => ({ ...common, item }));
}

function positive(flag: string, text: string): number {
  if (/^[1-9]\d{0,6}$/.test(text)) return Number(text);
  throw new AgentdError('USAGE', `${flag} "${text}" is not a whole number from 1`);
}

async function submit(
  server: WorkCaller,
  items: readonly Record<string, unknown>[],
  print: Print,
): Promise<number> {
  for (const item of items) {
    const answer = await server.call('work.submit', item);
    print(answer, `${String(answer.work_id)} ${answer.created === true ? 'submitted' : 'is known already'}`);
  }
  return 0;
}

async function list(server: WorkCaller, host: Host, flags: ListFlags, limit: number): Promise<number> {
  const { workHeader, workRow } = await import('./work-table.ts');
  const state = flags.state === undefined ? {} : { state: flags.state };
  const print = printer(host, flags);
  let after: unknown;
  for (let shown = 0; shown < limit; ) {
    const page = await server.call('work.list', {
      ...state,
      limit: Math.min(PAGE, limit - shown),
      ...(after === undefined ? {} : { after }),
    });
    if (after === undefined && flags.json !== true) host.stdout.write(`${workHeader()}\n`);
    const items = Array.isArray(page.items) ? (page.items as Record<string, unknown>[]) : [];
    for (const item of items) print(item, workRow(item));
    shown += items.length;
    after = page.next;
    if (after === undefined) break;
  }
  return 0;
}

async function show(server: WorkCaller, id: string, print: Print): Promise<number> {
  const { workDetails } = await import('./work-table.ts');
  const answer = await server.call('work.result', { work_id: id });
  print(answer, answer.found === true ? workDetails(answer) : `${id} is not known here`);
  return answer.found === true ? 0 : 1;
}

const REASONS: Readonly<Record<string, string>> = {
  unknown: 'is not known here',
  done: 'is done already',
  not_dead: 'is no dead letter',
};

async function settle(
  server: WorkCaller,
  action: 'requeue' | 'drop',
  ids: readonly string[],
  print: Print,
): Promise<number> {
  let code = 0;
  for (const id of ids) {
    const answer = await server.call('work.deadletter', { action, work_id: id });
    if (answer.ok !== true) code = 1;
    const reason = REASONS[String(answer.reason)] ?? `was refused: ${String(answer.reason)}`;
    const done = action === 'requeue' ? 'requeued' : 'dropped';
    print({ work_id: id, ...answer }, `${id} ${answer.ok === true ? done : reason}`);
  }
  return code;
}

async function stats(server: WorkCaller, print: Print): Promise<number> {
  const { workStats } = await import('./work-table.ts');
  const answer = await server.call('work.stats', {});
  print(answer, workStats(answer));
  return 0;
}
