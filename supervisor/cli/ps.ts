import { Command } from 'commander';
import { type ConnectionFlags, connectionOptions, sourcesOf } from '../console/connection-flags.ts';
import type { Host, VerbAction } from './host.ts';

interface PsFlags extends ConnectionFlags {
  readonly json?: true;
}

/** `agentd ps`: the agents that run, one a line. */
export function psCommand(run: (action: VerbAction) => void): Command {
  return connectionOptions(new Command('ps'))
    .description('list the agents that run: handle, state, tokens, CPU and memory')
    .option('--json', 'one agent a line as JSON')
    .action((flags: PsFlags) => run((host) => listAgents(host, flags)));
}

async function listAgents(host: Host, flags: PsFlags): Promise<number> {
  const [{ eachInstance }, { readInstance }, { agentTable }, { paintFor }] = await Promise.all([
    import('../console/each-instance.ts'),
    import('../console/instance-reads.ts'),
    import('../console/agent-table.ts'),
    import('../console/style.ts'),
  ]);
  const sources = sourcesOf(flags, host.env);
  const { answers, exitCode } = await eachInstance(host, sources, readInstance);
  if (flags.json) {
    for (const { url, status, inventory } of answers) {
      for (const agent of inventory.subagents) {
        host.stdout.write(`${JSON.stringify({ instance: status.instance, url, ...agent })}\n`);
      }
    }
    return exitCode;
  }
  const rows = answers.flatMap(({ status, inventory }) =>
    inventory.subagents.map((agent) => ({ instance: status.instance, agent })),
  );
  const lines = agentTable(rows, sources.length > 1, paintFor(host.stdout, host.env));
  host.stdout.write(`${lines.join('\n')}\n`);
  if (rows.length === 0 && answers.length > 0) host.stderr.write('agentd: no agent is running\n');
  return exitCode;
}
