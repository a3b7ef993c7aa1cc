import type { Command, Option } from 'commander';

/** What a shell needs to know of a command to complete it. */
export interface CommandSpec {
  /** Empty for the program itself. */
  readonly name: string;
  readonly description: string;
  readonly flags: readonly FlagSpec[];
  readonly commands: readonly CommandSpec[];
  /** Words its arguments may be. */
  readonly words: readonly string[];
  /** Its arguments may be files. */
  readonly files: boolean;
}

export interface FlagSpec {
  readonly long: string;
  readonly description: string;
  readonly value: ValueSpec;
}

type ValueSpec =
  | { readonly kind: 'none' }
  | { readonly kind: 'file' }
  | { readonly kind: 'choice'; readonly choices: readonly string[] }
  | { readonly kind: 'any' };

const LISTED = /(?:: |of )((?:[\w-]+, )+[\w-]+)$/;

/**
 * Reads a commander command. Hidden flags are left out.
 *
 * @param words of flags whose values the command itself does not know, by long name
 */
export function specOf(command: Command, words: ReadonlyMap<string, readonly string[]>): CommandSpec {
  const given = command.options
    .filter((option) => !option.hidden)
    .map(flagOf)
    .map((flag) => {
      const choices = words.get(flag.long);
      return choices === undefined || flag.value.kind !== 'any'
        ? flag
        : { ...flag, value: { kind: 'choice', choices } as const };
    });
  const help: FlagSpec = { long: '--help', description: 'Show help.', value: { kind: 'none' } };
  return {
    name: command.name(),
    description: oneLine(command.description()),
    flags: [...given, help],
    commands: command.commands.map((inner) => specOf(inner, words)),
    words: command.registeredArguments.flatMap(({ argChoices }) => argChoices ?? []),
    files: command.registeredArguments.some((argument) => /path|dir|file/i.test(argument.name())),
  };
}

function flagOf(option: Option): FlagSpec {
  return {
    long: option.long ?? option.short ?? '',
    description: oneLine(option.description),
    value: takenBy(option),
  };
}

function takenBy(option: Option): ValueSpec {
  if (!option.required && !option.optional) return { kind: 'none' };
  if (option.argChoices !== undefined) return { kind: 'choice', choices: option.argChoices };
  // A placeholder such as <a|b>, or a description that ends in the values.
  const placeholder = /<([a-z-]+(?:\|[a-z-]+)+)>/.exec(option.flags)?.[1];
  if (placeholder !== undefined) return { kind: 'choice', choices: placeholder.split('|') };
  const listed = LISTED.exec(option.description)?.[1];
  if (listed !== undefined) return { kind: 'choice', choices: listed.split(', ') };
  return /path|dir|file/i.test(option.flags) ? { kind: 'file' } : { kind: 'any' };
}

function oneLine(text: string): string {
  const [first = ''] = text.split('\n');
  return first.trim();
}
