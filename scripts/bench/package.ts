import { spawnSync } from 'node:child_process';
import { cpSync, lstatSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { installPacked, NATIVE_PACKAGES } from '../package/packed-install.ts';
import { print, quantile } from './report.ts';

const RUNS = 15;
const MIB = 1024 * 1024;

/** Size and start of the packed package, installed as a user would have it. */
export async function run(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'agentd-package-'));
  try {
    const installed = await installPacked(join(folder, 'prefix'), folder);
    const modules = join(installed.folder, 'node_modules');
    const whole = bytes(installed.folder);
    const native = NATIVE_PACKAGES.reduce((sum, name) => sum + bytes(join(modules, name)), 0);
    const own = whole - bytes(modules);
    print({ what: 'tarball', value: installed.tarballBytes / MIB, unit: 'MiB' });
    print({ what: 'package unpacked', value: own / MIB, unit: 'MiB' });
    print({ what: 'installed with production dependencies', value: whole / MIB, unit: 'MiB' });
    print({ what: 'installed with the native ones alone', value: (own + native) / MIB, unit: 'MiB' });
    const empty = mkdtempSync(join(folder, 'empty-'));
    const time = (file: string, args: readonly string[]): number =>
      quantile(
        Array.from({ length: RUNS }, () => {
          const start = performance.now();
          const { status } = spawnSync(file, args, { cwd: empty, stdio: 'ignore' });
          if (status !== 0) throw new Error(`${args.join(' ')} ended with ${status}`);
          return performance.now() - start;
        }),
        0.5,
      );
    const node = time(process.execPath, ['-e', '0']);
    const version = time(installed.bin, ['--version']);
    print({ what: 'node -e 0, for comparison, median', value: node, unit: 'ms' });
    print({ what: 'agentd --version, installed, median', value: version, unit: 'ms', target: '≤ 120' });
    print({ what: 'agentd --version, in starts of node', value: version / node, unit: '×' });
    const capabilities = time(installed.bin, ['--capabilities']);
    print({ what: 'agentd --capabilities, installed, median', value: capabilities, unit: 'ms' });
    const uncached = join(folder, 'uncached');
    cpSync(installed.folder, uncached, { recursive: true, filter: (path) => !path.endsWith('.cache') });
    const cold = time(join(uncached, 'dist/agentd.js'), ['--version']);
    print({ what: 'agentd --version without its code cache, median', value: cold, unit: 'ms' });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function bytes(path: string): number {
  const entry = lstatSync(path);
  if (!entry.isDirectory()) return entry.size;
  return readdirSync(path).reduce((sum, name) => sum + bytes(join(path, name)), 0);
}
