import type { Command } from 'commander';
import { expandOrRefuse } from '../config/expand.ts';

/**
 * Expands `${NAME}` in the flags that were given to a verb, as the engine does in its own and in files.
 * Defaults and what came from the environment are left alone; so are arguments that are no flags.
 *
 * @throws AgentdError CONFIG_UNSET_VARIABLE or CONFIG_INVALID, exit 2, naming the flag and the variable
 */
export function expandGivenFlags(command: Command, env: NodeJS.ProcessEnv): void {
  for (const option of command.options) {
    const name = option.attributeName();
    if (command.getOptionValueSource(name) !== 'cli') continue;
    const value: unknown = command.getOptionValue(name);
    const flag = option.long ?? name;
    if (typeof value === 'string') {
      command.setOptionValueWithSource(name, expandOrRefuse(value, flag, env), 'cli');
    } else if (Array.isArray(value) && value.every((item) => typeof item === 'string')) {
      const items = value.map((item) => expandOrRefuse(item, flag, env));
      command.setOptionValueWithSource(name, items, 'cli');
    }
  }
}
