import type { CommandSpec, FlagSpec } from './command-spec.ts';

/** A completion script for zsh. */
export function zshCompletion(program: CommandSpec, verbs: readonly CommandSpec[]): string {
  return [
    '#compdef agentd',
    '# Completion of agentd for zsh: save it as _agentd in a folder of $fpath.',
    '_agentd() {',
    '  local -a verbs inner',
    `  verbs=(${verbs.map(described).join(' ')})`,
    '  if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then',
    "    _describe 'verb' verbs",
    '    return',
    '  fi',
    '  case $words[2] in',
    ...verbs.flatMap(verbCase),
    `    *) ${argumentsOf(program)} ;;`,
    '  esac',
    '}',
    '_agentd "$@"',
    '',
  ].join('\n');
}

function verbCase(verb: CommandSpec): string[] {
  if (verb.commands.length === 0) {
    return [`    ${verb.name}) shift words; (( CURRENT-- )); ${argumentsOf(verb)} ;;`];
  }
  return [
    `    ${verb.name})`,
    `      inner=(${verb.commands.map(described).join(' ')})`,
    '      if (( CURRENT == 3 )) && [[ $words[3] != -* ]]; then',
    "        _describe 'command' inner",
    '        return',
    '      fi',
    '      case $words[3] in',
    ...verb.commands.map(
      (inner) =>
        `        ${inner.name}) shift words; shift words; (( CURRENT -= 2 )); ${argumentsOf(inner)} ;;`,
    ),
    '      esac ;;',
  ];
}

function argumentsOf(command: CommandSpec): string {
  const rest = command.files
    ? [quoted('*:file:_files')]
    : command.words.length > 0
      ? [quoted(`*:word:(${command.words.join(' ')})`)]
      : // Without it no flag would be offered after an argument.
        [quoted('*: : ')];
  return ['_arguments', ...command.flags.map(flagSpec), ...rest].join(' ');
}

/** `*`: it may be given again. */
function flagSpec({ long, description, value }: FlagSpec): string {
  const takes = {
    none: '',
    any: ':value: ',
    file: ':file:_files',
    choice: value.kind === 'choice' ? `:value:(${value.choices.join(' ')})` : '',
  }[value.kind];
  return quoted(`*${long}[${description.replace(/[[\]\\:]/g, (char) => `\\${char}`)}]${takes}`);
}

function described({ name, description }: CommandSpec): string {
  return quoted(`${name}:${description.replace(/[\\:]/g, (char) => `\\${char}`)}`);
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
