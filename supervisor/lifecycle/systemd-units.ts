/** Which unit files a fleet on this machine consists of. Pure: reading and writing are the verb's. */

/** What runs here: numbered shards of one fleet, or a unit for each partition. */
export type FleetShape =
  | { readonly kind: 'shards'; readonly count: number }
  | { readonly kind: 'partitions'; readonly names: readonly string[] };

export interface UnitPlan {
  /** Unit files and drop-ins: path in the unit folder → content. */
  readonly files: ReadonlyMap<string, string>;
  /** Links that enable units: path in the unit folder → where it points. */
  readonly links: ReadonlyMap<string, string>;
  /** The units that are enabled, the target last. */
  readonly enabled: readonly string[];
}

export interface UnitPlanInput {
  readonly shape: FleetShape;
  /** For a user's own manager instead of the machine's. */
  readonly user: boolean;
  /** Serving units that also run here. */
  readonly serving: readonly ('coordinate' | 'inbox')[];
  /** The unit files of the package: name → content. */
  readonly templates: ReadonlyMap<string, string>;
}

export const TARGET = 'agentd.target';
/** Named so that it applies after drop-ins of the package's examples and before a person's own. */
const SHARDS_DROP_IN = 'agentd-shard@.service.d/50-shards.conf';

/** Names that mean the same to a shell, to systemd (`%i`) and in `${PARTITION}`. */
export const PARTITION_NAME = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$/;

export function unitPlan(input: UnitPlanInput): UnitPlan {
  const { shape, user, serving, templates } = input;
  const files = new Map<string, string>();
  const template = shape.kind === 'shards' ? 'agentd-shard@.service' : 'agentd@.service';
  const fixed = serving.map((verb) => `agentd-${verb}.service`);
  for (const name of [TARGET, template, ...fixed]) {
    const text = templates.get(name) ?? '';
    files.set(name, user ? forUserManager(text) : text);
  }
  if (shape.kind === 'shards') {
    files.set(SHARDS_DROP_IN, `[Service]\nEnvironment=AGENT_SHARDS=${shape.count}\n`);
  }
  const instances = instanceNames(shape).map((name) => template.replace('@.', `@${name}.`));
  const links = new Map<string, string>();
  for (const unit of fixed) links.set(`${TARGET}.wants/${unit}`, `../${unit}`);
  for (const unit of instances) links.set(`${TARGET}.wants/${unit}`, `../${template}`);
  links.set(`${user ? 'default' : 'multi-user'}.target.wants/${TARGET}`, `../${TARGET}`);
  return { files, links, enabled: [...fixed, ...instances, TARGET] };
}

function instanceNames(shape: FleetShape): string[] {
  return shape.kind === 'shards'
    ? Array.from({ length: shape.count }, (_, index) => String(index))
    : [...shape.names];
}

/**
 * Links in `agentd.target.wants` that an earlier, larger or different fleet left behind.
 *
 * @param present names in that folder
 */
export function outdatedLinks(present: readonly string[], plan: UnitPlan): string[] {
  return present.filter(
    (name) => /^agentd(-shard)?@[^/]+\.service$/.test(name) && !plan.links.has(`${TARGET}.wants/${name}`),
  );
}

/** What only the machine's own manager can do: users, namespaces, capabilities, the credential store. */
const SYSTEM_ONLY =
  /^(DynamicUser|CapabilityBoundingSet|AmbientCapabilities|Protect\w+|Private\w+|DevicePolicy|RemoveIPC|KeyringMode|LoadCredential|Delegate|OOMPolicy|LimitNOFILE|After=network-online\.target|Wants=network-online\.target)/;

/**
 * A unit for `systemctl --user`: without what needs root, and without the comments about it. `%E`, `%S`
 * and `%t` mean the folders of the user there.
 */
export function forUserManager(text: string): string {
  const kept: string[] = [];
  let block: string[] = [];
  let dropped = false;
  const flush = (): void => {
    const comments = block.every((line) => line.startsWith('#'));
    if (!(dropped && comments)) kept.push(...block);
    block = [];
    dropped = false;
  };
  for (const line of text.split('\n')) {
    // A comment belongs to the settings below it, up to the next comment or empty line.
    const starts = line.startsWith('#') ? !(block.at(-1)?.startsWith('#') ?? true) || dropped : line === '';
    if (starts) flush();
    if (SYSTEM_ONLY.test(line)) dropped = true;
    else block.push(line.replace('WantedBy=multi-user.target', 'WantedBy=default.target'));
  }
  flush();
  return kept.join('\n').replace(/\n{3,}/g, '\n\n');
}

/** The variables that `${NAME}` in a configuration asks for, but for those the unit sets itself. */
export function variablesIn(configuration: string): string[] {
  const text = configuration.replace(/^\s*#.*$/gm, '');
  const names = [...text.matchAll(/(?<!\$)\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g)].map(([, name]) => name ?? '');
  const given = new Set(['PARTITION', 'CREDENTIALS_DIRECTORY', 'AGENT_SHARDS', 'HOME', 'USER']);
  return [...new Set(names)].filter((name) => !given.has(name));
}

/** The assignments of an environment file (systemd.exec(5), EnvironmentFile=), for looking at them. */
export function assignmentsIn(environment: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const line of environment.split('\n')) {
    const match = /^\s*([A-Za-z_][A-Za-z0-9_]*)=(.*)$/.exec(line);
    if (match !== null) found.set(match[1] ?? '', (match[2] ?? '').trim().replace(/^(["'])(.*)\1$/, '$2'));
  }
  return found;
}
