import type { CommandSpec, FlagSpec } from './command-spec.ts';

/** A completion script for fish. */
export function fishCompletion(program: CommandSpec, verbs: readonly CommandSpec[]): string {
  const bare = 'not __fish_seen_subcommand_from $__agentd_verbs';
  return [
    '# Completion of agentd for fish: save it as ~/.config/fish/completions/agentd.fish.',
    `set -g __agentd_verbs ${verbs.map(({ name }) => name).join(' ')}`,
    'complete -c agentd -f',
    ...verbs.map(({ name, description }) => line(bare, `-a ${name} -d ${quoted(description)}`)),
    ...program.flags.map((flag) => flagLine(bare, flag)),
    ...verbs.flatMap((verb) => commandLines(verb, `__fish_seen_subcommand_from ${verb.name}`)),
    '',
  ].join('\n');
}

function commandLines(command: CommandSpec, condition: string): string[] {
  const inner = command.commands.map(({ name }) => name).join(' ');
  const before = inner === '' ? condition : `${condition}; and not __fish_seen_subcommand_from ${inner}`;
  return [
    ...command.commands.map(({ name, description }) => line(before, `-a ${name} -d ${quoted(description)}`)),
    ...(command.words.length === 0 ? [] : [line(condition, `-a ${quoted(command.words.join(' '))}`)]),
    ...(command.files ? [line(condition, '-F')] : []),
    ...command.flags.map((flag) => flagLine(before, flag)),
    ...command.commands.flatMap((one) =>
      commandLines(one, `${condition}; and __fish_seen_subcommand_from ${one.name}`),
    ),
  ];
}

function flagLine(condition: string, { long, description, value }: FlagSpec): string {
  const takes = {
    none: '',
    any: ' -x',
    file: ' -r -F',
    choice: value.kind === 'choice' ? ` -x -a ${quoted(value.choices.join(' '))}` : '',
  }[value.kind];
  return line(condition, `-l ${long.replace(/^--/, '')}${takes} -d ${quoted(description)}`);
}

function line(condition: string, rest: string): string {
  return `complete -c agentd -n ${quoted(condition)} ${rest}`;
}

/** In single quotes fish knows two escapes. */
function quoted(text: string): string {
  return `'${text.replace(/[\\']/g, (char) => `\\${char}`)}'`;
}
