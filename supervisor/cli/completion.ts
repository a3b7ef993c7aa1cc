import { Argument, Command } from 'commander';
import type { CommandSpec } from '../console/completion/command-spec.ts';
import { HELP_VERB, VERBS } from './help-text.ts';
import type { Host, VerbAction } from './host.ts';

const SHELLS = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof SHELLS)[number];

/**
 * `agentd completion SHELL`: a completion script made from the commands themselves.
 *
 * @param everyCommand agentd without a verb first, then every verb
 */
export function completionCommand(
  run: (action: VerbAction) => void,
  everyCommand: () => Promise<readonly Command[]>,
): Command {
  return new Command('completion')
    .description('print a completion script: source <(agentd completion bash)')
    .addArgument(new Argument('<shell>', 'the shell it is for').choices([...SHELLS]))
    .action((shell: Shell) => run((host) => printCompletion(host, shell, everyCommand)));
}

async function printCompletion(
  host: Host,
  shell: Shell,
  everyCommand: () => Promise<readonly Command[]>,
): Promise<number> {
  const [{ specOf }, { topics }, generate] = await Promise.all([
    import('../console/completion/command-spec.ts'),
    import('../console/help/topics.ts'),
    generatorFor(shell),
  ]);
  const words = await wordsOfFlags();
  const [program, ...verbs] = (await everyCommand()).map((command) => specOf(command, words));
  if (program === undefined) return 1;
  const help: CommandSpec = {
    name: HELP_VERB.name,
    description: HELP_VERB.text,
    flags: [],
    commands: [],
    words: [...new Set([...Object.keys(VERBS), ...topics().map(({ name }) => name), 'topics'])],
    files: false,
  };
  host.stdout.write(generate(program, [...verbs, help]));
  return 0;
}

/** The words a flag of the engine may take, where they are a closed set, by its long name. */
async function wordsOfFlags(): Promise<ReadonlyMap<string, readonly string[]>> {
  const [{ SETTINGS }, { allKeys, wordsOf }] = await Promise.all([
    import('../config/settings.ts'),
    import('../config/schema-walk.ts'),
  ]);
  const words = new Map(allKeys().map(({ path, schema }) => [path, wordsOf(schema)]));
  return new Map(
    SETTINGS.flatMap(({ key, flag, aliases = [] }) => {
      const known = words.get(key) ?? null;
      return known === null || flag === undefined
        ? []
        : [flag, ...aliases].map((one) => [one, known] as const);
    }),
  );
}

type Generate = (program: CommandSpec, verbs: readonly CommandSpec[]) => string;

async function generatorFor(shell: Shell): Promise<Generate> {
  switch (shell) {
    case 'bash':
      return (await import('../console/completion/bash.ts')).bashCompletion;
    case 'zsh':
      return (await import('../console/completion/zsh.ts')).zshCompletion;
    case 'fish':
      return (await import('../console/completion/fish.ts')).fishCompletion;
  }
}
