import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  CHECKOUT,
  installPacked,
  NATIVE_PACKAGES,
  type PackedInstall,
} from '../../../scripts/package/packed-install.ts';

const version = (JSON.parse(readFileSync(join(CHECKOUT, 'package.json'), 'utf8')) as { version: string })
  .version;

describe('the packed package', () => {
  let folder = '';
  let installed: PackedInstall;
  let empty = '';
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'agentd-packed-'));
    installed = await installPacked(join(folder, 'prefix'), folder);
  }, 180_000);
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  beforeEach(() => {
    empty = mkdtempSync(join(folder, 'empty-'));
  });

  const agentd = (...args: string[]) =>
    spawnSync(installed.bin, args, { cwd: empty, env: { PATH: process.env.PATH ?? '' }, encoding: 'utf8' });

  it('holds the programs, the units, the examples and the guides, and no sources', () => {
    const files = new Set(installed.files);
    for (const file of [
      'package.json',
      'README.md',
      'dist/agentd.js',
      'dist/agentd.cjs',
      'dist/child.js',
      'dist/child.cjs',
      'dist/heartbeat-thread.cjs',
      'systemd/agentd-shard@.service',
      'systemd/etc/agentd/agentd.yaml',
      'systemd/drop-ins/metrics.conf',
      'examples/inbox/agentd.yaml',
      'examples/kubernetes/Dockerfile',
      'docs/exit-codes.md',
      'docs/LICENSE',
    ])
      expect(files, file).toContain(file);
    const stray = installed.files.filter((file) =>
      /^(test|scripts|supervisor|child|protocol|node_modules)\/|\.ts$|package-lock|\.env$(?<!agentd\.env|coordinate\.env|inbox\.env)/.test(
        file,
      ),
    );
    expect(stray).toEqual([]);
  });

  it('holds the text of the licence that package.json names', () => {
    const { license } = JSON.parse(readFileSync(join(CHECKOUT, 'package.json'), 'utf8')) as {
      license: string;
    };
    const text = readFileSync(join(CHECKOUT, 'docs/LICENSE'), 'utf8');
    expect(license).toBe('Apache-2.0');
    expect(text).toMatch(
      /^\s*Apache License\s+Version 2\.0, January 2004\s+http:\/\/www\.apache\.org\/licenses\//,
    );
    expect(text).toContain('END OF TERMS AND CONDITIONS');
  });

  it('was installed with nothing that only development needs', () => {
    const names = installed.dependencies.map((path) => path.replace(/^node_modules\//, ''));
    for (const name of ['better-sqlite3', 'koffi', 'pg']) expect(names).toContain(name);
    for (const name of ['esbuild', 'typescript', 'vitest', 'tsx', '@biomejs/biome'])
      expect(names).not.toContain(name);
  });

  it('says its version from an empty folder', () => {
    const { status, stdout, stderr } = agentd('--version');
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: `${version}\n`, stderr: '' });
    expect(readdirSync(empty)).toEqual([]);
  });

  it('runs an agent from an empty folder', () => {
    const { status, stdout } = agentd(
      'run',
      'hello',
      '--intelligence',
      'script:final',
      '--log-level',
      'error',
    );
    expect({ status, stdout }).toEqual({ status: 0, stdout: 'done\n' });
  });

  it('finds the unit files that came with it', () => {
    const { status, stdout } = agentd('units', '--shards', '2');
    expect(status).toBe(0);
    expect(stdout).toContain(join(installed.folder, 'systemd/agentd-shard@.service'));
  });

  it('does not try to build itself where it has no sources', () => {
    const { status, stdout } = spawnSync('npm', ['run', 'prepare', '--silent'], {
      cwd: installed.folder,
      encoding: 'utf8',
    });
    expect({ status, stdout: stdout.trim() }).toEqual({ status: 0, stdout: '' });
  });

  it('needs of its dependencies only the native ones: the programs are bundles', async () => {
    const modules = join(installed.folder, 'node_modules');
    const kept = new Set<string>(NATIVE_PACKAGES);
    for (const name of readdirSync(modules))
      if (!kept.has(name)) rmSync(join(modules, name), { recursive: true });
    expect(agentd('run', 'hello', '--intelligence', 'script:final', '--log-level', 'error').stdout).toBe(
      'done\n',
    );
    for (const args of [
      ['coordinate', '--listen', 'http://127.0.0.1:0', '--db', join(empty, 'ledger.sqlite')],
      ['inbox', empty, '--listen', 'http://127.0.0.1:0'],
    ]) {
      const server = spawn(installed.bin, [...args, '--log-format', 'json'], {
        cwd: empty,
        stdio: ['ignore', 'ignore', 'pipe'],
      });
      const ended = once(server, 'close');
      try {
        const events: string[] = [];
        for await (const line of createInterface({ input: server.stderr })) {
          events.push(line);
          if (line.includes('"proc.ready"')) break;
        }
        expect(events.at(-1), args[0]).toContain('"proc.ready"');
        server.kill('SIGTERM');
        expect(await ended, args[0]).toEqual([0, null]);
      } finally {
        server.kill('SIGKILL');
      }
    }
  });
});
