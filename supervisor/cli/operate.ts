import { Command } from 'commander';
import { AgentdError } from '../../protocol/errors.ts';
import {
  type ConnectionFlags,
  connectionOptions,
  onlySourceOf,
  sourcesOf,
} from '../console/connection-flags.ts';
import type { ManagementSource } from '../console/endpoint.ts';
import type { ManagementClient } from '../console/management-client.ts';
import type { Host, VerbAction } from './host.ts';

/** `agentd pause`, `resume`, `drain`, `lame-duck` and `cancel`: the operator methods as verbs. */

interface OperateFlags extends ConnectionFlags {
  readonly json?: true;
}
type Run = (action: VerbAction) => void;

export function pauseCommand(run: Run): Command {
  return simple('pause', 'stop giving out work and hold running agents at their next step', run, {
    act: (client) => client.operate('a2a.Pause', {}),
    said: 'paused; `agentd resume` goes on',
  });
}

export function resumeCommand(run: Run): Command {
  return simple('resume', 'end a pause', run, {
    act: (client) => client.operate('a2a.Resume', {}),
    said: 'goes on',
  });
}

export function drainCommand(run: Run): Command {
  return operatorVerb('drain', 'take no new work, let running agents end, then exit')
    .option('--deadline <duration>', 'how long the drain may take (default: --drain-timeout of the instance)')
    .action((flags: OperateFlags & { readonly deadline?: string }) =>
      run(async (host) => {
        const params = flags.deadline === undefined ? {} : { deadline_ms: await duration(flags.deadline) };
        return operate(host, flags, sourcesOf(flags, host.env), {
          act: (client) => client.operate('a2a.Drain', params),
          said: 'drains and then exits; `agentd events --follow` shows how far it is',
        });
      }),
    );
}

export function lameDuckCommand(run: Run): Command {
  return operatorVerb('lame-duck', 'take no new work but stay up; not ready for load balancers')
    .option('--off', 'take new work again')
    .action((flags: OperateFlags & { readonly off?: true }) =>
      run((host) =>
        operate(host, flags, sourcesOf(flags, host.env), {
          act: (client) => client.operate('a2a.LameDuck', { ready: flags.off === true }),
          said: flags.off
            ? 'takes new work again'
            : 'is a lame duck: what runs goes on, nothing new starts; `agentd lame-duck --off` ends it',
        }),
      ),
    );
}

export function cancelCommand(run: Run): Command {
  return operatorVerb('cancel', 'stop one agent and everything below it')
    .argument('<handle>', 'handle of the agent, such as 0.2; `agentd ps` lists them')
    .option('--reason <text>', 'why, for the log')
    .action((handle: string, flags: OperateFlags & { readonly reason?: string }) =>
      run(async (host) => {
        const { checkedHandle } = await import('../console/handle.ts');
        const reason = flags.reason === undefined ? {} : { reason: flags.reason };
        const params = { handle: checkedHandle(handle), ...reason };
        return operate(host, flags, [onlySourceOf(flags, host.env)], {
          act: (client) => client.operate('a2a.Cancel', params),
          said: `is stopping agent ${handle} and everything below it`,
        });
      }),
    );
}

interface Operation {
  act(client: ManagementClient): Promise<Record<string, unknown>>;
  /** What the instance does now, after its URL. */
  readonly said: string;
}

function simple(name: string, description: string, run: Run, operation: Operation): Command {
  return operatorVerb(name, description).action((flags: OperateFlags) =>
    run((host) => operate(host, flags, sourcesOf(flags, host.env), operation)),
  );
}

function operatorVerb(name: string, description: string): Command {
  return connectionOptions(new Command(name))
    .description(description)
    .option('--json', 'what the instance answers, one JSON object a line');
}

async function operate(
  host: Host,
  flags: OperateFlags,
  sources: readonly ManagementSource[],
  { act, said }: Operation,
): Promise<number> {
  const { eachInstance } = await import('../console/each-instance.ts');
  const { answers, exitCode } = await eachInstance(host, sources, async (client) => ({
    url: client.url,
    answer: await act(client),
  }));
  for (const { url, answer } of answers) {
    host.stdout.write(flags.json ? `${JSON.stringify({ url, ...answer })}\n` : `${url} ${said}\n`);
  }
  return exitCode;
}

async function duration(text: string): Promise<number> {
  const { parseDuration } = await import('../config/quantities.ts');
  const ms = parseDuration(text);
  if (ms !== null) return ms;
  throw new AgentdError('USAGE', `--deadline "${text}" is no duration`, {
    remedy: 'Write 250ms, 30s, 5m or plain seconds.',
  });
}
