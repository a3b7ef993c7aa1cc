import { Command } from 'commander';
import { type ConnectionFlags, connectionOptions, sourcesOf } from '../console/connection-flags.ts';
import type { Host, VerbAction } from './host.ts';

interface TreeFlags extends ConnectionFlags {
  readonly json?: true;
}

/** `agentd tree`: instances and everything under them. */
export function treeCommand(run: (action: VerbAction) => void): Command {
  return connectionOptions(new Command('tree'))
    .description('show running instances as trees: agents, sessions, routes and MCP servers')
    .option('--json', 'one instance a line as JSON')
    .action((flags: TreeFlags) => run((host) => showTree(host, flags)));
}

async function showTree(host: Host, flags: TreeFlags): Promise<number> {
  const [{ eachInstance }, { readInstance }, { treeLines }, { paintFor }] = await Promise.all([
    import('../console/each-instance.ts'),
    import('../console/instance-reads.ts'),
    import('../console/tree-view.ts'),
    import('../console/style.ts'),
  ]);
  const { answers, exitCode } = await eachInstance(host, sourcesOf(flags, host.env), readInstance);
  const paint = paintFor(host.stdout, host.env);
  for (const [at, state] of answers.entries()) {
    if (flags.json) host.stdout.write(`${JSON.stringify(state)}\n`);
    else host.stdout.write(`${at === 0 ? '' : '\n'}${treeLines(state, paint).join('\n')}\n`);
  }
  return exitCode;
}
