import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { parseDuration } from '../../../supervisor/config/quantities.ts';
import { forUserManager } from '../../../supervisor/lifecycle/systemd-units.ts';
import { type Given, load, refusal } from '../../helpers/load-config.ts';

const FOLDER = fileURLToPath(new URL('../../../systemd/', import.meta.url));
const UNITS = readdirSync(FOLDER).filter((name) => /\.(service|target)$/.test(name));
const SERVICES = UNITS.filter((name) => name.endsWith('.service'));
const WORKERS = ['agentd@.service', 'agentd-shard@.service'];
const DROP_INS = readdirSync(join(FOLDER, 'drop-ins'));

type Unit = ReadonlyMap<string, ReadonlyMap<string, readonly string[]>>;

/** systemd.syntax(7), as far as our units use it. */
function parse(text: string): Unit {
  const unit = new Map<string, Map<string, string[]>>();
  let section = new Map<string, string[]>();
  for (const [at, line] of text.split('\n').entries()) {
    if (line === '' || line.startsWith('#')) continue;
    const header = /^\[(\w+)\]$/.exec(line)?.[1];
    if (header !== undefined) {
      section = new Map();
      unit.set(header, section);
      continue;
    }
    const [, key, value] = /^([A-Z]\w+)=(.*)$/.exec(line) ?? [];
    if (key === undefined || value === undefined) throw new Error(`line ${at + 1} is no setting: ${line}`);
    section.set(key, [...(section.get(key) ?? []), value]);
  }
  return unit;
}

const read = (name: string): string => readFileSync(join(FOLDER, name), 'utf8');
const settings = (name: string, section: string): ReadonlyMap<string, readonly string[]> =>
  parse(read(name)).get(section) ?? new Map();
const service = (name: string, key: string): string | undefined => settings(name, 'Service').get(key)?.at(-1);
const environment = (name: string): readonly string[] =>
  (settings(name, 'Service').get('Environment') ?? []).flatMap((line) => line.split(' '));
const milliseconds = (text: string | undefined): number => parseDuration(text ?? '') ?? Number.NaN;

describe('the unit files', () => {
  it('are the two templates, the servers and the target', () => {
    expect(UNITS).toEqual([
      'agentd-coordinate.service',
      'agentd-inbox.service',
      'agentd-shard@.service',
      'agentd.target',
      'agentd@.service',
    ]);
  });

  it.each(SERVICES)('%s is told apart, ordered, and belongs to the fleet', (name) => {
    expect(settings(name, 'Unit').get('PartOf')).toEqual(['agentd.target']);
    expect(settings(name, 'Install').get('WantedBy')).toEqual(['agentd.target']);
    expect(settings(name, 'Unit').has('StartLimitIntervalSec')).toBe(true);
    expect(settings(name, 'Unit').has('StartLimitBurst')).toBe(true);
  });

  it.each(SERVICES)('%s says itself when it is ready, alive and stopping', (name) => {
    expect(service(name, 'Type')).toBe('notify');
    // A datagram from the main process needs no wider access.
    expect(service(name, 'NotifyAccess')).toBe('main');
    expect(milliseconds(service(name, 'WatchdogSec'))).toBeGreaterThan(10_000);
    expect(service(name, 'KillMode')).toBe('mixed');
    expect(service(name, 'Restart')).toBe('on-failure');
    expect(service(name, 'RestartPreventExitStatus')?.split(' ')).toContain('2');
    expect(service(name, 'StateDirectory')).toMatch(/^agentd/);
  });

  it.each(SERVICES)('%s is hardened, and not in a way that kills Node', (name) => {
    const keys = settings(name, 'Service');
    for (const key of [
      'NoNewPrivileges',
      'DynamicUser',
      'PrivateTmp',
      'PrivateDevices',
      'RestrictNamespaces',
    ])
      expect(keys.get(key), key).toEqual(['yes']);
    expect(service(name, 'ProtectSystem')).toBe('strict');
    expect(keys.get('CapabilityBoundingSet')).toEqual(['']);
    // V8 writes and runs code, and protects it with pkey_alloc.
    expect(keys.has('MemoryDenyWriteExecute')).toBe(false);
    expect(keys.get('SystemCallFilter')?.[0]?.split(' ')).toEqual(['@system-service', '@pkey']);
    expect(service(name, 'SystemCallErrorNumber')).toBe('EPERM');
  });

  it.each(SERVICES)('%s says of each line of hardening what it protects and what it breaks', (name) => {
    const text = read(name);
    const hardening = text.slice(text.indexOf('# --- Hardening'), text.indexOf('\n[Install]'));
    let comment = '';
    let wasSetting = false;
    for (const line of hardening.split('\n').slice(3)) {
      if (line.startsWith('#')) comment = wasSetting ? line : `${comment} ${line}`;
      else if (line !== '') expect(comment, line).toContain('Breaks: ');
      wasSetting = !line.startsWith('#');
    }
  });

  it.each(WORKERS)('%s outlives its drain, delegates its cgroup and never retries a refusal', (name) => {
    const stop = milliseconds(service(name, 'TimeoutStopSec'));
    expect(stop).toBeGreaterThan(25_000 + 5_000);
    expect(environment(name)).toContain(`AGENT_POD_GRACE_SECONDS=${stop / 1_000}`);
    expect(service(name, 'RestartPreventExitStatus')).toBe('2 5');
    expect(service(name, 'Delegate')).toBe('yes');
    // It would make the delegated cgroup read-only.
    expect(settings(name, 'Service').has('ProtectControlGroups')).toBe(false);
    expect(service(name, 'OOMPolicy')).toBe('continue');
    expect(service(name, 'RuntimeDirectory')).toMatch(/-%i$/);
    expect(service(name, 'ExecReload')).toContain('$MAINPID');
    const credentials = settings(name, 'Service').get('LoadCredential') ?? [];
    expect(credentials.map((line) => line.split(':')[0])).toEqual(['intelligence-token', 'coordinate-token']);
  });

  it('name their partition and their shard after the instance', () => {
    expect(environment('agentd@.service')).toContain('PARTITION=%i');
    expect(service('agentd-shard@.service', 'ExecStart')).toContain('AGENT_SHARD=%i/${AGENT_SHARDS}');
  });

  it.each(SERVICES)('%s leaves its variables to agentd, but for the one in the environment', (name) => {
    const command = service(name, 'ExecStart') ?? '';
    expect(command.match(/(?<!\$)\$\{\w+\}/g) ?? []).toEqual(
      name === 'agentd-shard@.service' ? ['${AGENT_SHARDS}'] : [],
    );
  });

  it.each(DROP_INS)('drop-ins/%s is one section, and says where it goes', (name) => {
    const text = read(`drop-ins/${name}`);
    expect([...parse(text).keys()]).toEqual(['Service']);
    expect(text).toMatch(/^# → \/etc\/systemd\/system\/agentd[\w-]*@?\.service\.d\/[\w-]+\.conf$/m);
  });

  it('the example of a longer drain keeps the stop above the drain', () => {
    const keys = parse(read('drop-ins/long-drain.conf')).get('Service');
    const set = new Map((keys?.get('Environment') ?? []).map((line) => line.split('=') as [string, string]));
    const stop = milliseconds(keys?.get('TimeoutStopSec')?.[0]);
    expect(milliseconds(set.get('AGENT_DRAIN_TIMEOUT'))).toBeLessThan(stop);
    expect(Number(set.get('AGENT_POD_GRACE_SECONDS')) * 1_000).toBe(stop);
  });
});

describe('the examples for /etc/agentd', () => {
  const given = (names: readonly string[], more: Readonly<Record<string, string>>): Given => ({
    flags: { '--config': names.map((name) => join(FOLDER, 'etc/agentd', name)) },
    defaultMode: 'reactive',
    env: {
      INBOX_URL: 'http://127.0.0.1:7412/mcp',
      COORD_URL: 'http://127.0.0.1:7411/mcp',
      AGENT_INTELLIGENCE: 'script:final',
      AGENT_POD_GRACE_SECONDS: '45',
      ...more,
    },
  });

  it('are accepted for a shard', async () => {
    const { config } = await load(given(['agentd.yaml'], { AGENT_SHARD: '3/4' }));
    expect(config.shard).toMatchObject({ index: 3, count: 4 });
    expect(config.lifecycle.drainTimeoutMs).toBeLessThan(45_000);
  });

  it('are accepted for a partition, whose name is in the route', async () => {
    const { config } = await load(given(['agentd.yaml', 'partition.yaml'], { PARTITION: 'invoices' }));
    expect(config.routes.map(({ match }) => match)).toEqual(['inbox:///invoices/**']);
  });

  it('are refused for a partition without a name', async () => {
    const refused = await refusal(given(['agentd.yaml', 'partition.yaml'], {}));
    expect(refused.exitCode).toBe(2);
    expect(refused.message).toMatch(
      /partition\.yaml:\d+:\d+: the environment variable PARTITION is not set$/,
    );
    expect(refused.remedy).toMatch(/^Set PARTITION/);
  });
});

const mayVerify = spawnSync('systemd-analyze', ['--version']).status === 0;

describe.skipIf(!mayVerify)('systemd-analyze (skipped where systemd is not installed)', () => {
  let folder = '';
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it('has nothing to say about the units and every drop-in', () => {
    folder = mkdtempSync(join(tmpdir(), 'agentd-units-'));
    for (const name of UNITS) cpSync(join(FOLDER, name), join(folder, name));
    for (const name of DROP_INS) {
      const unit = /\/(agentd[\w-]*@?\.service)\.d\//.exec(read(`drop-ins/${name}`))?.[1] ?? '';
      cpSync(join(FOLDER, 'drop-ins', name), join(folder, `${unit}.d`, name));
    }
    const files = UNITS.map((name) => join(folder, name.replace('@.', '@1.')));
    const env = { ...process.env, SYSTEMD_UNIT_PATH: `${folder}:` };
    const verified = spawnSync('systemd-analyze', ['verify', '--man=no', ...files], {
      env,
      encoding: 'utf8',
    });
    const ours = verified.stderr.split('\n').filter((line) => line.includes('agentd'));
    expect(ours).toEqual([]);
    expect(verified.status).toBe(0);
  });

  it('scores the exposure of each service as OK or better', () => {
    folder = mkdtempSync(join(tmpdir(), 'agentd-units-'));
    for (const name of SERVICES) {
      const file = join(folder, name.replace('@.', '@1.'));
      cpSync(join(FOLDER, name), file);
      const scored = spawnSync('systemd-analyze', ['security', '--offline=true', '--threshold=30', file], {
        encoding: 'utf8',
      });
      expect(scored.status, `${name}\n${scored.stdout.split('\n').slice(-3).join('\n')}`).toBe(0);
    }
  });
});

describe('a unit for the manager of a user', () => {
  it.each(SERVICES)('%s keeps what makes it a service and loses what needs root', (name) => {
    const unit = parse(forUserManager(read(name)));
    const keys = unit.get('Service');
    for (const key of ['Type', 'ExecStart', 'KillMode', 'WatchdogSec', 'TimeoutStopSec', 'SystemCallFilter'])
      expect(keys?.get(key), key).toEqual(settings(name, 'Service').get(key));
    for (const key of [
      'DynamicUser',
      'PrivateTmp',
      'ProtectSystem',
      'LoadCredential',
      'CapabilityBoundingSet',
    ])
      expect(keys?.has(key), key).toBe(false);
    expect(unit.get('Install')?.get('WantedBy')).toEqual(['agentd.target']);
  });

  it('has no comment about what was left out', () => {
    const text = forUserManager(read('agentd-shard@.service'));
    expect(text).not.toContain('A user of its own');
    expect(text).not.toContain('No devices');
    expect(text).toContain('System calls of ordinary services');
  });

  it('starts the target with the session', () => {
    expect(
      parse(forUserManager(read('agentd.target')))
        .get('Install')
        ?.get('WantedBy'),
    ).toEqual(['default.target']);
  });
});
