import type { Command } from 'commander';
import { AgentdError } from '../../protocol/errors.ts';
import { AGENT_VERSION } from '../../protocol/versions.ts';
import type { Mode } from '../config/config.ts';
import type { Purpose } from '../config/context.ts';
import type { FlagValues } from '../config/flag-layers.ts';
import type { LoadedConfig } from '../config/load.ts';
import { type DescribeFlag, engineCommand, givenFlags } from './engine-command.ts';
import { addOverview, VERBS } from './help-text.ts';
import type { Host, VerbAction } from './host.ts';

/** The verb `supervise`, the verb `run`, or null for agentd without a verb. */
export function engineVerb(
  verb: 'supervise' | 'run' | null,
  run: (action: VerbAction) => void,
  describe?: DescribeFlag,
): Command {
  const command = engineCommand(verb ?? 'agentd', describe);
  const defaultMode: Mode = verb === 'supervise' ? 'reactive' : 'once';
  if (verb === null) addOverview(command).option('-V, --version', 'Print the version and exit.');
  else command.description(VERBS[verb]);
  if (verb === 'run') command.argument('[instruction]', 'What the agent is to do.');
  return command.action((...given: unknown[]) => {
    const [instruction] = given;
    const flags = withInstruction(givenFlags(command), typeof instruction === 'string' ? instruction : null);
    run((host) => runEngine(flags, defaultMode, host));
  });
}

function withInstruction(flags: FlagValues, instruction: string | null): FlagValues {
  if (instruction === null) return flags;
  if (flags['--instruction'] !== undefined) {
    throw new AgentdError('USAGE', 'the instruction is given twice, as an argument and with --instruction');
  }
  return { ...flags, '--instruction': instruction };
}

async function runEngine(flags: FlagValues, defaultMode: Mode, host: Host): Promise<number> {
  if (flags['--version'] === true) {
    host.stdout.write(`${AGENT_VERSION}\n`);
    return 0;
  }
  if (flags['--config-schema'] === true) {
    const { configJsonSchema } = await import('../config/json-schema.ts');
    return print(configJsonSchema(), host);
  }
  const { loadConfig } = await import('../config/load.ts');
  const purpose = purposeOf(flags);
  const load = (): Promise<LoadedConfig> =>
    loadConfig({
      flags,
      env: host.env,
      cwd: host.cwd,
      defaultMode,
      terminal: host.stderr.isTTY === true,
      purpose,
    });
  const loaded = await load();
  const { config, warnings, sources } = loaded;
  if (purpose === 'describe') {
    const { describeCapabilities } = await import('./describe.ts');
    return print(await describeCapabilities(config), host);
  }
  if (purpose === 'validate') {
    const { effectiveConfig } = await import('../config/effective.ts');
    return print({ valid: true, warnings, sources, config: effectiveConfig(config) }, host);
  }
  const { runSupervisor } = await import('../compose.ts');
  return runSupervisor(loaded, load, host);
}

function purposeOf(flags: FlagValues): Purpose {
  if (flags['--capabilities'] === true) return 'describe';
  return flags['--validate-config'] === true ? 'validate' : 'run';
}

function print(document: unknown, host: Host): number {
  host.stdout.write(`${JSON.stringify(document, null, 2)}\n`);
  return 0;
}
