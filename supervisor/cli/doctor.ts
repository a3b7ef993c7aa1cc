import type { Command } from 'commander';
import { AgentdError } from '../../protocol/errors.ts';
import type { Config } from '../config/config.ts';
import { expandOrRefuse } from '../config/expand.ts';
import type { FlagValues } from '../config/flag-layers.ts';
import type { Finding } from '../console/doctor/finding.ts';
import { type DescribeFlag, engineCommand, givenFlags } from './engine-command.ts';
import type { Host, VerbAction } from './host.ts';

/** Variables that say that a configuration is meant. */
const CONFIGURING = ['AGENT_CONFIG', 'AGENT_MCP_CONFIG', 'AGENT_INTELLIGENCE', 'INTELLIGENCE'] as const;
const DEFAULT_AGENTS = 64;

/** `agentd doctor`: whether this machine, and a configuration on it, will work. */
export function doctorCommand(run: (action: VerbAction) => void, describe?: DescribeFlag): Command {
  const command = engineCommand('doctor', describe)
    .description('check this machine and, with the flags of supervise, a configuration on it')
    .option('--db <path>', 'database of a coordination server, or postgres://… [AGENT_COORDINATE_DB]')
    .option('--json', 'one finding a line as JSON');
  return command.action(() => {
    const { '--json': json, '--db': db, ...flags } = givenFlags(command);
    run((host) => examine(host, flags, databaseOf(db, host.env), json === true));
  });
}

/** What `agentd coordinate` would open, were it started like this; null when nothing says so. */
function databaseOf(flag: FlagValues[string] | undefined, env: NodeJS.ProcessEnv): string | null {
  if (typeof flag === 'string') return expandOrRefuse(flag, '--db', env);
  return (env.AGENT_COORDINATE_DB ?? '') === '' ? null : (env.AGENT_COORDINATE_DB ?? null);
}

async function examine(host: Host, flags: FlagValues, db: string | null, json: boolean): Promise<number> {
  const [{ exitCodeFor, findingLine }, { paintFor }] = await Promise.all([
    import('../console/doctor/finding.ts'),
    import('../console/style.ts'),
  ]);
  const paint = paintFor(host.stdout, host.env);
  const all: Finding[] = [];
  const show = (findings: readonly Finding[]): void => {
    for (const finding of findings) {
      all.push(finding);
      host.stdout.write(`${json ? JSON.stringify(finding) : findingLine(finding, paint)}\n`);
    }
  };
  const { config, findings } = await readConfiguration(host, flags);
  const { checkMachine } = await import('../console/doctor/machine.ts');
  const agents = config?.limits.maxTotalSubagents ?? DEFAULT_AGENTS;
  show(await checkMachine(agents, config?.cgroup !== null && config !== null));
  const { checkChild } = await import('../console/doctor/child.ts');
  show([await checkChild(host.env)]);
  if (db !== null) {
    const { checkLedger } = await import('../console/doctor/ledger.ts');
    show([await checkLedger(db, host.cwd)]);
  }
  show(findings);
  if (config !== null) {
    const [wiring, peers] = await Promise.all([
      import('../console/doctor/wiring.ts'),
      import('../console/doctor/peers.ts'),
    ]);
    show(await wiring.checkPorts(config));
    show(wiring.checkFolders(config, host.env));
    const [servers, endpoints] = await Promise.all([
      peers.checkServers(config),
      peers.checkEndpoints(config, host.env),
    ]);
    show(servers);
    show(endpoints);
  }
  return exitCodeFor(all);
}

/** The configuration, as far as it can be had, and what there is to say about it. */
async function readConfiguration(
  host: Host,
  flags: FlagValues,
): Promise<{ readonly config: Config | null; readonly findings: readonly Finding[] }> {
  const { fail, ok, warn } = await import('../console/doctor/finding.ts');
  const check = 'configuration';
  const given = Object.keys(flags).length > 0 || CONFIGURING.some((name) => (host.env[name] ?? '') !== '');
  if (!given) {
    return {
      config: null,
      findings: [ok(check, 'none was given, so only the machine was checked (--config PATH)')],
    };
  }
  const { loadConfig } = await import('../config/load.ts');
  const load = (purpose: 'run' | 'describe') =>
    loadConfig({
      flags,
      env: host.env,
      cwd: host.cwd,
      defaultMode: 'reactive',
      terminal: host.stderr.isTTY === true,
      purpose,
    });
  try {
    const { config, warnings, files } = await load('run');
    const from = files.length === 0 ? 'flags and environment' : files.join(', ');
    return {
      config,
      findings: [
        ok(check, `acceptable (${from})`),
        ...warnings.map((text) => warn(check, text.replace(/\.$/, ''), 'See docs/configuration.md.')),
      ],
    };
  } catch (error) {
    if (!(error instanceof AgentdError)) throw error;
    const finding = fail(check, error.message.replace(/\.$/, ''), error.remedy);
    // What is missing for a run need not keep the rest from being looked at.
    const config = await load('describe').then(
      (loaded) => loaded.config,
      () => null,
    );
    return { config, findings: [finding] };
  }
}
