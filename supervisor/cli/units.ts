import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Command } from 'commander';
import { AgentdError, errorMessage } from '../../protocol/errors.ts';
import { EXIT } from '../../protocol/exit-codes.ts';
import {
  assignmentsIn,
  type FleetShape,
  outdatedLinks,
  PARTITION_NAME,
  TARGET,
  type UnitPlan,
  unitPlan,
  variablesIn,
} from '../lifecycle/systemd-units.ts';
import type { Host, VerbAction } from './host.ts';

interface UnitsFlags {
  readonly shards?: string;
  readonly partitions?: string;
  readonly user?: true;
  readonly coordinate?: true;
  readonly inbox?: true;
  readonly write?: string;
  readonly dryRun?: true;
  readonly check?: true;
}

/** More shards on one machine than this is a slip of the finger. */
const MAX_SHARDS = 512;

/** `agentd units`: the systemd units of a fleet on this machine. */
export function unitsCommand(run: (action: VerbAction) => void): Command {
  return new Command('units')
    .description('print or write the systemd units of a fleet on this machine, and check what they need')
    .option('--shards <n>', 'one agentd-shard@K.service for each of N shards')
    .option('--partitions <name,...>', 'one agentd@NAME.service for each partition')
    .option('--coordinate', 'the coordination server runs here, too')
    .option('--inbox', 'a folder served as an inbox here, too')
    .option('--user', "for a user's own systemd (systemctl --user)")
    .option('--write <dir>', 'write units, drop-in and links there, such as /etc/systemd/system')
    .option('--dry-run', 'only print what --write would do (the default without it)')
    .option('--check', 'exit 1 when something is missing')
    .action((flags: UnitsFlags) => run((host) => units(flags, host)));
}

async function units(flags: UnitsFlags, host: Host): Promise<number> {
  const shape = shapeOf(flags);
  const user = flags.user === true;
  const serving = (['coordinate', 'inbox'] as const).filter((verb) => flags[verb] === true);
  const source = packagedUnits();
  const plan = unitPlan({ shape, user, serving, templates: source.templates });
  if (flags.write !== undefined && flags.dryRun !== true) {
    const folder = resolve(host.cwd, flags.write);
    for (const line of writePlan(plan, folder)) host.stdout.write(`${line}\n`);
  } else {
    host.stdout.write(`${script(plan, user, source.folder, flags.write)}\n`);
  }
  const missing = findings(shape, user, host);
  for (const { what, remedy } of missing) host.stderr.write(`agentd: ${what}\n  ${remedy}\n`);
  return flags.check === true && missing.length > 0 ? EXIT.FAILURE : EXIT.OK;
}

function shapeOf({ shards, partitions }: UnitsFlags): FleetShape {
  if ((shards === undefined) === (partitions === undefined)) {
    throw new AgentdError('USAGE', 'exactly one of --shards N and --partitions A,B,C is needed');
  }
  if (shards !== undefined) {
    const count = /^[1-9]\d{0,5}$/.test(shards) ? Number(shards) : 0;
    if (count < 1 || count > MAX_SHARDS) {
      throw new AgentdError('USAGE', `--shards "${shards}" is not a whole number from 1 to ${MAX_SHARDS}`);
    }
    return { kind: 'shards', count };
  }
  const names = (partitions ?? '').split(',').map((name) => name.trim());
  for (const name of names) {
    if (PARTITION_NAME.test(name)) continue;
    throw new AgentdError('USAGE', `--partitions: ${JSON.stringify(name)} cannot be the name of a unit`, {
      remedy: 'Use letters, digits, "_", "-" and ".", beginning with a letter, a digit or "_".',
    });
  }
  if (new Set(names).size < names.length) {
    throw new AgentdError('USAGE', '--partitions names a partition twice');
  }
  return { kind: 'partitions', names };
}

/** The unit files shipped beside this program. @throws AgentdError UNITS_MISSING */
function packagedUnits(): { readonly folder: string; readonly templates: Map<string, string> } {
  const places = ['../systemd/', '../../systemd/'].map((path) =>
    fileURLToPath(new URL(path, import.meta.url)),
  );
  const folder = places.find((place) => isThere(join(place, TARGET)));
  if (folder === undefined) {
    throw new AgentdError('UNITS_MISSING', `cannot find the unit files of this package in ${places[0]}`);
  }
  const names = readdirSync(folder).filter((name) => /\.(service|target)$/.test(name));
  return {
    folder,
    templates: new Map(names.map((name) => [name, readFileSync(join(folder, name), 'utf8')])),
  };
}

/** The commands that do what --write does, and start it. */
function script(plan: UnitPlan, user: boolean, source: string, write: string | undefined): string {
  const scope = user ? 'systemctl --user' : 'systemctl';
  const folder = write ?? (user ? '~/.config/systemd/user' : '/etc/systemd/system');
  const lines = [`# ${plan.enabled.length} units in ${folder}`, `mkdir -p ${folder}`];
  for (const [path, content] of plan.files) {
    if (!path.includes('/') && !user) lines.push(`cp ${source}${path} ${folder}/`);
    else {
      lines.push(`mkdir -p ${dirname(`${folder}/${path}`)}`);
      lines.push(`cat > ${folder}/${path} <<'END'\n${content}END`);
    }
  }
  const units = plan.enabled.join(' ');
  return [...lines, `${scope} daemon-reload`, `${scope} enable ${units}`, `${scope} start ${TARGET}`].join(
    '\n',
  );
}

/** Writes what differs, and removes the links of instances that are no longer wanted. */
function writePlan(plan: UnitPlan, folder: string): string[] {
  const done: string[] = [];
  try {
    for (const [path, content] of plan.files) {
      const file = join(folder, path);
      if (isThere(file) && readFileSync(file, 'utf8') === content) continue;
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, content);
      done.push(`wrote ${file}`);
    }
    const wants = join(folder, `${TARGET}.wants`);
    mkdirSync(wants, { recursive: true });
    for (const name of outdatedLinks(readdirSync(wants), plan)) {
      rmSync(join(wants, name));
      done.push(`removed ${join(wants, name)}`);
    }
    for (const [path, target] of plan.links) {
      const link = join(folder, path);
      if (isThere(link)) continue;
      mkdirSync(dirname(link), { recursive: true });
      symlinkSync(target, link);
      done.push(`enabled ${link}`);
    }
  } catch (error) {
    throw new AgentdError('UNITS_NOT_WRITTEN', `cannot write the units to ${folder}: ${errorMessage(error)}`);
  }
  return done.length === 0 ? [`${folder} is up to date`] : done;
}

interface Finding {
  readonly what: string;
  readonly remedy: string;
}

/** What these units will need and this machine does not have. */
function findings(shape: FleetShape, user: boolean, host: Host): Finding[] {
  const found: Finding[] = [];
  const missing = (what: string, remedy: string): void => void found.push({ what, remedy });
  const path = (host.env.PATH ?? '').split(':');
  if (!path.some((folder) => isThere(join(folder, 'systemctl')))) {
    missing(
      'there is no systemctl on this machine',
      'Write the units for another machine, or install systemd.',
    );
  } else if (!isThere('/run/systemd/system')) {
    missing('systemd does not run this machine', 'The units take effect where systemd is the init.');
  }
  // The search path of units, which is not the caller's (systemd.exec(5)).
  const searched = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin'];
  for (const program of ['agentd', 'node']) {
    if (searched.some((folder) => isThere(join(folder, program)))) continue;
    const remedy = `Install it there, or set Environment=PATH=… in a drop-in of the units.`;
    missing(`${program} is in none of ${searched.join(', ')}, where units look for it`, remedy);
  }
  const configHome = host.env.XDG_CONFIG_HOME ?? join(host.env.HOME ?? '~', '.config');
  const home = join(user ? configHome : '/etc', 'agentd');
  const environment = readOr(join(home, 'agentd.env'));
  const set = assignmentsIn(environment ?? '');
  for (const name of ['agentd.yaml', ...(shape.kind === 'partitions' ? ['partition.yaml'] : [])]) {
    const text = readOr(join(home, name));
    const remedy = `Copy and adapt the example in the package's systemd/etc/agentd/${name}.`;
    if (text === null) missing(`${join(home, name)} cannot be read`, remedy);
    for (const variable of variablesIn(text ?? '')) {
      if ((set.get(variable) ?? '') !== '') continue;
      missing(
        `${join(home, name)} refers to \${${variable}}, which ${join(home, 'agentd.env')} does not set`,
        `Add the line ${variable}=… there.`,
      );
    }
  }
  const shards = set.get('AGENT_SHARDS');
  if (shape.kind === 'shards' && shards !== undefined && shards !== String(shape.count)) {
    missing(
      `${join(home, 'agentd.env')} says AGENT_SHARDS=${shards} and wins over the ${shape.count} of these units`,
      'Remove that line: every shard must be told the same number.',
    );
  }
  return found;
}

function readOr(file: string): string | null {
  try {
    return statSync(file).isFile() ? readFileSync(file, 'utf8') : null;
  } catch {
    return null;
  }
}

function isThere(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}
