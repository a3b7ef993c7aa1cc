import type { CommandSpec, FlagSpec } from './command-spec.ts';

/**
 * A completion script for bash 4 and newer.
 *
 * @param program agentd without a verb; its flags are offered where there is no verb
 */
export function bashCompletion(program: CommandSpec, verbs: readonly CommandSpec[]): string {
  const all = [program, ...verbs.flatMap((verb) => [verb, ...verb.commands])];
  return [
    '# Completion of agentd for bash: source it, or save it as /etc/bash_completion.d/agentd.',
    '_agentd() {',
    '  local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}"',
    '  local verb="" inner="" words="" files=""',
    '  (( COMP_CWORD > 1 )) && verb="${COMP_WORDS[1]}"',
    '  (( COMP_CWORD > 2 )) && inner="${COMP_WORDS[2]}"',
    '  COMPREPLY=()',
    '  case "$previous" in',
    ...valueCases(all),
    '  esac',
    '  case "$verb" in',
    ...verbs.flatMap(verbCase),
    `    *) words="${[...verbs.map(({ name }) => name), wordsOf(program)].join(' ')}" ;;`,
    '  esac',
    '  COMPREPLY=($(compgen -W "$words" -- "$current"))',
    '  if [[ -n "$files" && "$current" != -* ]]; then',
    '    compopt -o filenames 2>/dev/null',
    '    COMPREPLY+=($(compgen -f -- "$current"))',
    '  fi',
    '}',
    'complete -F _agentd agentd',
    '',
  ].join('\n');
}

/** What may follow a flag that takes a value. A flag of several verbs is listed once. */
function valueCases(commands: readonly CommandSpec[]): string[] {
  const flags = new Map<string, FlagSpec>();
  for (const flag of commands.flatMap((command) => command.flags)) {
    const known = flags.get(flag.long);
    if (known === undefined || known.value.kind === 'any') flags.set(flag.long, flag);
  }
  const cases: string[] = [];
  const open: string[] = [];
  const files: string[] = [];
  for (const { long, value } of flags.values()) {
    if (value.kind === 'any') open.push(long);
    if (value.kind === 'file') files.push(long);
    if (value.kind === 'choice') {
      cases.push(
        `    ${long}) COMPREPLY=($(compgen -W "${value.choices.join(' ')}" -- "$current")); return ;;`,
      );
    }
  }
  return [
    ...cases,
    ...(files.length === 0
      ? []
      : [
          `    ${files.join('|')}) compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- "$current")); return ;;`,
        ]),
    ...(open.length === 0 ? [] : [`    ${open.join('|')}) return ;;`]),
  ];
}

function verbCase(verb: CommandSpec): string[] {
  if (verb.commands.length === 0) return [`    ${verb.name}) ${assigned(verb)} ;;`];
  return [
    `    ${verb.name})`,
    '      case "$inner" in',
    ...verb.commands.map((inner) => `        ${inner.name}) ${assigned(inner)} ;;`),
    `        *) words="${[...verb.commands.map(({ name }) => name), wordsOf(verb)].join(' ')}" ;;`,
    '      esac ;;',
  ];
}

function assigned(command: CommandSpec): string {
  return `words="${wordsOf(command)}"${command.files ? ' files=1' : ''}`;
}

function wordsOf({ words, flags }: CommandSpec): string {
  return [...words, ...flags.map(({ long }) => long)].join(' ');
}
