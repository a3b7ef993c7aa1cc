import { Command } from 'commander';
import { AgentdError } from '../../protocol/errors.ts';
import { type ConnectionFlags, connectionOptions, onlySourceOf } from '../console/connection-flags.ts';
import type { Host, VerbAction } from './host.ts';

interface InspectFlags extends ConnectionFlags {
  readonly json?: true;
  readonly events: string;
}

/** `agentd inspect HANDLE`: one agent in full. */
export function inspectCommand(run: (action: VerbAction) => void): Command {
  return connectionOptions(new Command('inspect'))
    .description('show one agent in full: usage, process, result and its latest events')
    .argument('<handle>', 'handle of the agent, such as 0.2; `agentd ps` lists them')
    .option('--events <n>', 'how many of its latest events to show', '10')
    .option('--json', 'one JSON object')
    .action((handle: string, flags: InspectFlags) => run((host) => showAgent(host, handle, flags)));
}

async function showAgent(host: Host, handle: string, flags: InspectFlags): Promise<number> {
  const kept = Number(flags.events);
  if (!Number.isInteger(kept) || kept < 0 || kept > 1_000) {
    throw new AgentdError('USAGE', `--events "${flags.events}" is not a number from 0 to 1000`);
  }
  const [{ withManagement }, { readAgent }, { agentLines }, { paintFor }, { checkedHandle }] =
    await Promise.all([
      import('../console/management-client.ts'),
      import('../console/instance-reads.ts'),
      import('../console/agent-view.ts'),
      import('../console/style.ts'),
      import('../console/handle.ts'),
    ]);
  const checked = checkedHandle(handle);
  const details = await withManagement(onlySourceOf(flags, host.env), (client) =>
    readAgent(client, checked, kept),
  );
  if (flags.json) host.stdout.write(`${JSON.stringify(details)}\n`);
  else host.stdout.write(`${agentLines(details, paintFor(host.stdout, host.env)).join('\n')}\n`);
  return 0;
}
