import { type Command, CommanderError } from 'commander';
import { AgentdError, ERRORS } from '../../protocol/errors.ts';
import { HELP_VERB, VERBS, type Verb } from './help-text.ts';
import type { Host, VerbAction } from './host.ts';

/**
 * The command line: `agentd VERB …`, or `agentd --flags` for the engine itself. Only the verb that
 * is asked for is loaded.
 */

/** What a verb module provides. */
type VerbCommand = (run: (action: VerbAction) => void) => Command;

/**
 * Runs what the arguments ask for and resolves to the exit code.
 *
 * @param args without the program and script names
 * @throws AgentdError to be printed for people
 */
export async function runProgram(args: readonly string[], host: Host): Promise<number> {
  const [first] = args;
  if (first === undefined || first.startsWith('-')) return runEngineVerb(null, args, host);
  if (first === 'help') return runHelp(args.slice(1), host);
  if (!isVerb(first)) throw await unknownVerb(first);
  const rest = args.slice(1);
  if (first === 'supervise' || first === 'run') return runEngineVerb(first, rest, host);
  const verb = await loadVerb(first);
  return runCommand(first === 'doctor' ? verb : await expanding(verb, rest, host), rest, host);
}

/** The verb with each `${NAME}` in its flags expanded. The engine, and doctor, do that with their configuration. */
async function expanding(verb: VerbCommand, args: readonly string[], host: Host): Promise<VerbCommand> {
  if (!args.some((arg) => arg.includes('${'))) return verb;
  const { expandGivenFlags } = await import('./expand-flags.ts');
  return (run) => verb(run).hook('preAction', (_verb, chosen) => expandGivenFlags(chosen, host.env));
}

function isVerb(name: string): name is Verb {
  return Object.hasOwn(VERBS, name);
}

async function unknownVerb(name: string): Promise<AgentdError> {
  const { didYouMean } = await import('../config/suggest.ts');
  const verbs = [...Object.keys(VERBS), HELP_VERB.name];
  return new AgentdError('USAGE', `there is no verb ${JSON.stringify(name)}${didYouMean(name, verbs)}`, {
    remedy: `The verbs are ${verbs.join(', ')}; see \`agentd --help\`.`,
  });
}

/** Verbs have their flags, topics their page; a word that is both has both. */
async function runHelp([word]: readonly string[], host: Host): Promise<number> {
  const { helpOn, isTopic, topicList } = await import('./help.ts');
  if (word === undefined || word === HELP_VERB.name) {
    await runProgram(['--help'], host);
    host.stdout.write(`\n${topicList()}`);
    return 0;
  }
  if (!isVerb(word)) return helpOn(word, host);
  await runProgram([word, '--help'], host);
  if (isTopic(word)) {
    host.stdout.write('\n');
    helpOn(word, host);
  }
  return 0;
}

async function loadVerb(verb: Exclude<Verb, 'supervise' | 'run'>): Promise<VerbCommand> {
  switch (verb) {
    case 'coordinate':
      return (await import('./coordinate.ts')).coordinateCommand;
    case 'inbox':
      return (await import('./inbox.ts')).inboxCommand;
    case 'work':
      return (await import('./work.ts')).workCommand;
    case 'results':
      return (await import('./results.ts')).resultsCommand;
    case 'events':
      return (await import('./events.ts')).eventsCommand;
    case 'completion': {
      const { completionCommand } = await import('./completion.ts');
      return (run) => completionCommand(run, everyCommand);
    }
    case 'doctor': {
      const [{ doctorCommand }, { describeFlag }] = await Promise.all([
        import('./doctor.ts'),
        import('./option-help.ts'),
      ]);
      return (run) => doctorCommand(run, describeFlag);
    }
    case 'top':
      return (await import('./top.ts')).topCommand;
    case 'tree':
      return (await import('./tree.ts')).treeCommand;
    case 'ps':
      return (await import('./ps.ts')).psCommand;
    case 'inspect':
      return (await import('./inspect.ts')).inspectCommand;
    case 'pause':
      return (await import('./operate.ts')).pauseCommand;
    case 'resume':
      return (await import('./operate.ts')).resumeCommand;
    case 'cancel':
      return (await import('./operate.ts')).cancelCommand;
    case 'drain':
      return (await import('./operate.ts')).drainCommand;
    case 'lame-duck':
      return (await import('./operate.ts')).lameDuckCommand;
    case 'units':
      return (await import('./units.ts')).unitsCommand;
  }
}

/** Every command there is, agentd without a verb first; for completion. */
async function everyCommand(): Promise<Command[]> {
  const [{ engineVerb }, { describeFlag }] = await Promise.all([
    import('./engine-verb.ts'),
    import('./option-help.ts'),
  ]);
  const unused = (): void => undefined;
  const engines = [null, 'supervise', 'run'] as const;
  const others = Object.keys(VERBS)
    .filter(isVerb)
    .filter((verb) => verb !== 'supervise' && verb !== 'run');
  const built = await Promise.all(others.map(loadVerb));
  return [
    ...engines.map((verb) => engineVerb(verb, unused, describeFlag)),
    ...built.map((build) => build(unused)),
  ];
}

async function runEngineVerb(
  verb: 'supervise' | 'run' | null,
  args: readonly string[],
  host: Host,
): Promise<number> {
  const { engineVerb } = await import('./engine-verb.ts');
  const help = args.includes('--help') || args.includes('-h');
  const describe = help ? (await import('./option-help.ts')).describeFlag : undefined;
  const { inEngine } = await import('./config-invalid.ts');
  return inEngine(args, host, () => runCommand((run) => engineVerb(verb, run, describe), args, host));
}

/** Parses the arguments of one verb and runs its action. */
async function runCommand(build: VerbCommand, args: readonly string[], host: Host): Promise<number> {
  const { exitCodeHelp, EXIT_CODE_POINTER } = await import('./help-text.ts');
  let action: VerbAction | null = null;
  const command = build((chosen) => {
    action = chosen;
  });
  const runsAgents = ['agentd', 'supervise', 'run'].includes(command.name());
  command.name(command.name() === 'agentd' ? 'agentd' : `agentd ${command.name()}`);
  prepare(command, host, runsAgents ? exitCodeHelp() : EXIT_CODE_POINTER);
  const asked = command.commands.find((inner) => inner.name() === args[0]) ?? command;
  try {
    await command.parseAsync([...args], { from: 'user' });
    const chosen = action as VerbAction | null;
    if (chosen !== null) return await chosen(host);
  } catch (error) {
    if (!(error instanceof CommanderError)) throw forVerb(error, asked);
    if (error.exitCode === 0) return 0;
    throw usageError(error, asked);
  }
  host.stderr.write(command.helpInformation());
  return 2;
}

/** Neither writes nor exits by itself: help goes to stdout, mistakes become errors of ours. */
function prepare(command: Command, host: Host, ending: string): void {
  command.helpOption('-h, --help', 'Show this help and exit.').addHelpText('after', ending);
  command.exitOverride().configureOutput({
    writeOut: (text) => host.stdout.write(text),
    writeErr: () => undefined,
    getOutHelpWidth: () => host.stdout.columns ?? 100,
    getErrHelpWidth: () => host.stderr.columns ?? 100,
  });
  for (const inner of command.commands) prepare(inner, host, ending);
}

/** A mistake that names no remedy of its own points to the help of its verb. */
function forVerb(error: unknown, command: Command): unknown {
  if (!(error instanceof AgentdError) || error.remedy !== ERRORS.USAGE.remedy) return error;
  return new AgentdError(error.code, error.message, {
    cause: error.cause,
    exitCode: error.exitCode,
    remedy: `Correct what the message names; \`${pathOf(command)} --help\` shows what it takes.`,
  });
}

function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${command.parent.name()} ${command.name()}`;
}

/** @param command the one the mistake was made with */
function usageError(error: CommanderError, command: Command): AgentdError {
  const path = pathOf(command);
  const usage = `${path} ${command.usage()}`.trim();
  const inner = command.commands.map((one) => one.name());
  const see = `\`${path} --help\``;
  if (error.code === 'commander.help') {
    return new AgentdError('USAGE', `${path} needs a command`, {
      remedy: `The commands are ${inner.join(', ')}; see ${see}.`,
    });
  }
  const [message = '', ...hints] = error.message.split('\n');
  const text = message.replace(/^error: /, '').replace(/\.$/, '');
  const hint = hints.map((line) => ` ${line.replace('Did you mean', 'did you mean')}`).join('');
  return new AgentdError('USAGE', `${text}${hint}`, { cause: error, remedy: remedyFor(error.code) });

  function remedyFor(code: string): string {
    switch (code) {
      case 'commander.unknownCommand':
        return `The commands are ${inner.join(', ')}; see ${see}.`;
      case 'commander.missingArgument':
      case 'commander.excessArguments':
        return `Write \`${usage}\`; see ${see}.`;
      case 'commander.optionMissingArgument':
        return `Give the flag a value; see ${see}.`;
      default:
        return `${see} lists what it takes.`;
    }
  }
}
