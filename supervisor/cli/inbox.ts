import { resolve } from 'node:path';
import { Command } from 'commander';
import { AgentdError } from '../../protocol/errors.ts';
import { expandOrRefuse } from '../config/expand.ts';
import type { Host, VerbAction } from './host.ts';
import type { LogFlags } from './serving.ts';

interface InboxFlags extends LogFlags {
  readonly listen: string;
  readonly results?: string;
  readonly maxFiles: string;
}

/** `agentd inbox DIR`: a folder served as MCP resources. */
export function inboxCommand(run: (action: VerbAction) => void): Command {
  return new Command('inbox')
    .description('serve a folder as subscribable MCP resources, with tools to read and to file results')
    .argument('<dir>', 'the folder')
    .option('--listen <url>', 'where to listen; http:// on loopback, port 0 for any', 'http://127.0.0.1:0')
    .option('--results <dir>', 'where results are filed (default: DIR/.results)')
    .option('--max-files <n>', 'documents at most', '100000')
    .option('--log-level <level>', 'trace, debug, info, warn or error (default: info)')
    .option('--log-format <format>', 'json or text (default: text on a terminal)')
    .action((dir: string, flags: InboxFlags) => run((host) => serveInbox(host, dir, flags)));
}

async function serveInbox(host: Host, dir: string, flags: InboxFlags): Promise<number> {
  const maxFiles = Number(flags.maxFiles);
  if (!/^\d+$/.test(flags.maxFiles) || maxFiles < 1 || maxFiles > 1_000_000) {
    throw new AgentdError('USAGE', `--max-files "${flags.maxFiles}" is not a number from 1 to 1000000`);
  }
  const [{ openServingLog, serveUntilSignal }, { startInbox }] = await Promise.all([
    import('./serving.ts'),
    import('../inbox/run-inbox.ts'),
  ]);
  const log = await openServingLog(host, flags);
  // The folder is this verb's configuration, as flags are.
  const folder = resolve(host.cwd, expandOrRefuse(dir, 'the folder', host.env));
  log.info('proc.start', { verb: 'inbox', folder });
  const start = (): ReturnType<typeof startInbox> =>
    startInbox({
      folder,
      listen: flags.listen,
      results: flags.results === undefined ? null : resolve(host.cwd, flags.results),
      maxFiles,
      log,
    });
  return serveUntilSignal(host, log, start, ({ documents, results }) => ({ documents, results }));
}
