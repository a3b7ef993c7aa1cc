import { Command, Option } from 'commander';
import type { FlagValues } from '../config/flag-layers.ts';
import { OTHER_FLAGS, type OtherFlag, SETTINGS, type Setting } from '../config/settings.ts';

/** The flags of `agentd supervise`, `agentd run` and of agentd without a verb: one engine. */

export type EngineFlag = Setting | OtherFlag;

/** Says what a flag does; loaded only for help. */
export type DescribeFlag = (flag: EngineFlag) => string;

/** A command that takes every flag of the engine. */
export function engineCommand(name: string, describe: DescribeFlag = () => ''): Command {
  const command = new Command(name).allowExcessArguments(false);
  const flags: readonly EngineFlag[] = [...OTHER_FLAGS, ...SETTINGS];
  for (const flag of flags) {
    const spellings = 'key' in flag ? [flag.flag, ...(flag.aliases ?? [])] : [flag.flag];
    for (const [at, spelling] of spellings.entries()) {
      if (spelling === undefined) continue;
      const option = engineOption(spelling, flag, describe(flag));
      command.addOption(at === 0 ? option : option.hideHelp());
    }
  }
  return command;
}

function engineOption(spelling: string, flag: EngineFlag, description: string): Option {
  if (flag.arg === undefined) return new Option(spelling, description);
  const option = new Option(`${spelling} <${flag.arg}>`, description);
  if (flag.repeat !== true) return option;
  return option.argParser<string[]>((value, earlier) => [...(earlier ?? []), value]);
}

/** The flags that were given, by their long name. */
export function givenFlags(command: Command): FlagValues {
  const values: Readonly<Record<string, unknown>> = command.opts();
  const given: [string, true | string | readonly string[]][] = [];
  for (const option of command.options) {
    const value = values[option.attributeName()];
    if (typeof option.long === 'string' && isFlagValue(value)) given.push([option.long, value]);
  }
  return Object.fromEntries(given);
}

function isFlagValue(value: unknown): value is true | string | readonly string[] {
  return value === true || typeof value === 'string' || Array.isArray(value);
}
