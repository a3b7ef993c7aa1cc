import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { assignmentsIn, variablesIn } from '../../../supervisor/lifecycle/systemd-units.ts';
import { runVerb } from '../../helpers/run-verb.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'agentd-units-verb-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const env = (more: Record<string, string> = {}): NodeJS.ProcessEnv => ({
  PATH: process.env.PATH ?? '',
  HOME: folder,
  ...more,
});
const wanted = (): string[] => readdirSync(join(folder, 'agentd.target.wants')).sort();

describe('agentd units', () => {
  it('prints the commands for a fleet of shards and changes nothing', async () => {
    const ended = await runVerb(['units', '--shards', '3', '--coordinate'], { env: env(), cwd: folder });
    expect(ended.code).toBe(0);
    expect(ended.stdout).toContain('/systemd/agentd-shard@.service /etc/systemd/system/');
    expect(ended.stdout).toContain('Environment=AGENT_SHARDS=3');
    expect(ended.stdout).toContain(
      'systemctl enable agentd-coordinate.service agentd-shard@0.service agentd-shard@1.service ' +
        'agentd-shard@2.service agentd.target\nsystemctl start agentd.target',
    );
    expect(readdirSync(folder)).toEqual([]);
  });

  it('writes what it prints, once, and takes back the shards of a larger fleet', async () => {
    const write = (shards: string) =>
      runVerb(['units', '--shards', shards, '--coordinate', '--write', folder], { env: env() });
    expect((await write('3')).code).toBe(0);
    expect(wanted()).toEqual([
      'agentd-coordinate.service',
      'agentd-shard@0.service',
      'agentd-shard@1.service',
      'agentd-shard@2.service',
    ]);
    for (const name of wanted()) {
      const target = readlinkSync(join(folder, 'agentd.target.wants', name));
      expect(lstatSync(join(folder, 'agentd.target.wants', target)).isFile()).toBe(true);
    }
    expect(readlinkSync(join(folder, 'multi-user.target.wants/agentd.target'))).toBe('../agentd.target');
    expect((await write('3')).stdout).toBe(`${folder} is up to date\n`);
    const smaller = await write('2');
    expect(smaller.stdout).toContain(`removed ${join(folder, 'agentd.target.wants/agentd-shard@2.service')}`);
    expect(wanted()).not.toContain('agentd-shard@2.service');
    expect(readFileSync(join(folder, 'agentd-shard@.service.d/50-shards.conf'), 'utf8')).toBe(
      '[Service]\nEnvironment=AGENT_SHARDS=2\n',
    );
  });

  it('a dry run with a folder writes nothing', async () => {
    const ended = await runVerb(['units', '--shards', '2', '--write', folder, '--dry-run'], { env: env() });
    expect(ended.code).toBe(0);
    expect(ended.stdout).toContain(folder);
    expect(readdirSync(folder)).toEqual([]);
  });

  it('writes partitions for the manager of a user', async () => {
    const args = ['units', '--partitions', 'invoices,tickets', '--user', '--write', folder];
    expect((await runVerb(args, { env: env() })).code).toBe(0);
    expect(wanted()).toEqual(['agentd@invoices.service', 'agentd@tickets.service']);
    expect(readFileSync(join(folder, 'agentd@.service'), 'utf8')).not.toMatch(/^DynamicUser/m);
    expect(readlinkSync(join(folder, 'default.target.wants/agentd.target'))).toBe('../agentd.target');
  });

  it('says what is missing, with what to do about it', async () => {
    const args = ['units', '--shards', '2', '--user', '--check'];
    const bare = await runVerb(args, { env: env({ PATH: folder }) });
    expect(bare.code).toBe(1);
    expect(bare.stderr).toContain('there is no systemctl');
    expect(bare.stderr).toContain(`${folder}/.config/agentd/agentd.yaml cannot be read\n  Copy and adapt`);
    const home = join(folder, '.config/agentd');
    mkdirSync(home, { recursive: true });
    writeFileSync(
      join(home, 'agentd.yaml'),
      'mcp: ${INBOX_URL}\n# ${NOT_THIS}\nx: $${NOR_THIS}\ny: ${COORD_URL}\n',
    );
    writeFileSync(join(home, 'agentd.env'), 'COORD_URL=http://127.0.0.1:1/mcp\nAGENT_SHARDS=8\n');
    const half = await runVerb(args, { env: env() });
    expect(half.stderr).toContain('refers to ${INBOX_URL}');
    expect(half.stderr).not.toMatch(/COORD_URL|NOT_THIS|NOR_THIS|cannot be read/);
    expect(half.stderr).toContain('AGENT_SHARDS=8 and wins over the 2 of these units');
  });

  it.each<[string, string[], string]>([
    ['neither shards nor partitions', [], 'exactly one of --shards N and --partitions'],
    ['both', ['--shards', '2', '--partitions', 'a'], 'exactly one of'],
    ['no number', ['--shards', 'many'], 'is not a whole number from 1'],
    ['none at all', ['--shards', '0'], 'is not a whole number from 1'],
    ['a partition that is no unit name', ['--partitions', 'a b'], '"a b" cannot be the name of a unit'],
    ['a partition that is a path', ['--partitions', '../etc'], 'cannot be the name of a unit'],
    ['a partition twice', ['--partitions', 'a,a'], 'names a partition twice'],
  ])('is refused with %s', async (_what, args, message) => {
    const ended = await runVerb(['units', ...args], { env: env() });
    expect(ended.code).toBe(2);
    expect(ended.stderr).toContain(message);
  });

  it('says where it could not write', async () => {
    const file = join(folder, 'file');
    writeFileSync(file, '');
    const ended = await runVerb(['units', '--shards', '1', '--write', file], { env: env() });
    expect(ended.code).toBe(2);
    expect(ended.stderr).toContain(`cannot write the units to ${file}`);
  });

  it('reads environment files and configurations as systemd and the loader do', () => {
    expect(Object.fromEntries(assignmentsIn('# A=1\nB=2\n C="x y"\nno assignment\nD=\n'))).toEqual({
      B: '2',
      C: 'x y',
      D: '',
    });
    expect(variablesIn('a: ${A}/${B}\nb: ${A}\nc: $${C}\nd: ${PARTITION}\n  # ${E}\n')).toEqual(['A', 'B']);
  });
});
