import { cp, mkdir, readFile, symlink } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';

/** An install of the packed package, made without a registry and without a compiler. */

export const CHECKOUT = fileURLToPath(new URL('../../', import.meta.url));

/** What the bundles do not contain: packages with native code, and what those load. */
export const NATIVE_PACKAGES = [
  'better-sqlite3',
  'bindings',
  'file-uri-to-path',
  'koffi',
  '@koromix',
] as const;

export interface PackedInstall {
  /** The tarball, as `npm publish` would send it. */
  readonly tarball: string;
  readonly tarballBytes: number;
  /** Files in the tarball. */
  readonly files: readonly string[];
  /** The installed package's folder. */
  readonly folder: string;
  /** The installed command. */
  readonly bin: string;
  /** Names of the packages that were installed beside it. */
  readonly dependencies: readonly string[];
}

/**
 * Packs this checkout as it is built and installs the tarball under `prefix`, as
 * `npm install --global --omit=dev` does it: the package in `lib/node_modules/agentd`, its production
 * dependencies (and nothing else) inside it, the command in `bin/`. The dependencies are copies of
 * what this checkout has installed, since native ones would otherwise have to be compiled again.
 */
export async function installPacked(prefix: string, scratch: string): Promise<PackedInstall> {
  await mkdir(scratch, { recursive: true });
  const packed = await execa(
    'npm',
    ['pack', '--ignore-scripts', '--json', '--loglevel=error', '--pack-destination', scratch],
    { cwd: CHECKOUT },
  );
  const { filename, size, files } = packReport(packed.stdout);
  const tarball = join(scratch, filename);
  const folder = join(prefix, 'lib/node_modules/agentd');
  await mkdir(folder, { recursive: true });
  await execa('tar', ['-xzf', tarball, '-C', folder, '--strip-components=1', '--no-same-owner']);
  const dependencies = await productionPackages();
  for (const path of dependencies) {
    // Copies: whatever the package does there, it does to its own files.
    await cp(join(CHECKOUT, path), join(folder, path), {
      recursive: true,
      verbatimSymlinks: true,
      // What a package brought along inside it is in the list by itself, if it is for production.
      filter: (source) => source === join(CHECKOUT, path) || !source.endsWith('/node_modules'),
    });
  }
  const bin = join(prefix, 'bin/agentd');
  await mkdir(dirname(bin), { recursive: true });
  await symlink(relative(dirname(bin), join(folder, await binOf(folder))), bin);
  return { tarball, tarballBytes: size, files, folder, bin, dependencies };
}

/** `npm pack --json`: a list of reports, or a mapping from name to report with npm 11 and newer. */
function packReport(stdout: string): { filename: string; size: number; files: string[] } {
  const parsed: unknown = JSON.parse(stdout);
  const [report] = Object.values(parsed as Record<string, unknown>) as [
    { filename: string; size: number; files: { path: string }[] }?,
  ];
  if (report === undefined) throw new Error('npm pack reported nothing');
  const { filename, size, files } = report;
  return { filename, size, files: files.map(({ path }) => path) };
}

/** The folders below node_modules/ that the lockfile installs for production on this platform. */
async function productionPackages(): Promise<string[]> {
  const lock = JSON.parse(await readFile(join(CHECKOUT, 'package-lock.json'), 'utf8')) as {
    packages: Readonly<
      Record<string, { dev?: boolean; devOptional?: boolean; optional?: boolean; peer?: boolean }>
    >;
  };
  const wanted = Object.entries(lock.packages)
    .filter(([path, { dev, devOptional }]) => path !== '' && dev !== true && devOptional !== true)
    .map(([path]) => path);
  const present = await Promise.all(wanted.map(isInstalled));
  return wanted.filter((_, index) => present[index]);
}

/** An optional package for another platform is in the lockfile and not on the disk. */
async function isInstalled(path: string): Promise<boolean> {
  return readFile(join(CHECKOUT, path, 'package.json')).then(
    () => true,
    () => false,
  );
}

async function binOf(folder: string): Promise<string> {
  const { bin } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as {
    bin: { agentd: string };
  };
  return bin.agentd;
}
