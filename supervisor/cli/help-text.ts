import type { Command } from 'commander';
import { EXIT_CODE_TABLE } from '../../protocol/exit-codes.ts';

/** The verbs and what they do, for help and for suggestions. */
export const VERBS = {
  supervise: 'Watch resources and hand each change to a supervised child (mode reactive by default).',
  run: 'Run the agent once: agentd run "What to do" --intelligence URL.',
  coordinate: 'Serve the ledger that grants leases to supervisors.',
  inbox: 'Serve a folder as subscribable MCP resources.',
  work: 'Submit and inspect work at a coordination server.',
  results: 'Show run reports as a table.',
  events: 'Show the events of running instances.',
  completion: 'Print a completion script for bash, zsh or fish.',
  doctor: 'Check this machine and a configuration on it, with a remedy for each finding.',
  top: 'Show live what instances do.',
  tree: 'Show running instances as trees of agents, sessions, routes and servers.',
  ps: 'List the agents that run.',
  inspect: 'Show one agent in full.',
  pause: 'Pause an instance.',
  resume: 'End a pause.',
  cancel: 'Stop one agent and everything below it.',
  drain: 'Let an instance finish what runs, then exit.',
  'lame-duck': 'Let an instance take no new work but stay up.',
  units: 'Print or write the systemd units of a fleet on this machine.',
} as const;
export type Verb = keyof typeof VERBS;

/** Not among the verbs: it is about all of them. */
export const HELP_VERB = {
  name: 'help',
  text: 'Explain a verb, a topic, an error code, an exit code or a metric.',
};

/** Adds the verbs in front of the flags. */
export function addOverview(command: Command): Command {
  const all = [...Object.entries(VERBS), [HELP_VERB.name, HELP_VERB.text] as const];
  const verbs = all.map(([verb, text]) => `  ${verb.padEnd(12)}${text}`);
  const intro = [
    'Supervises AI agents. Without a verb the flags below drive the same engine, in mode once.',
    '',
    'Verbs (agentd VERB --help for each):',
    ...verbs,
  ];
  return command.description(intro.join('\n'));
}

/** The exit codes, for the end of the help of what runs agents. */
export function exitCodeHelp(): string {
  const rows = EXIT_CODE_TABLE.map(
    ({ code, name, when }) => `  ${String(code).padEnd(5)}${name.padEnd(19)}${when}`,
  );
  return ['', 'Exit codes:', ...rows].join('\n');
}

/** In their place, at the end of the help of every other verb. */
export const EXIT_CODE_POINTER = '\nExit codes: `agentd help exit-codes`.';
