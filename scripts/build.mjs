// Bundles the two programs and the health thread into dist/.
//
// Each program becomes one CommonJS file, a V8 code cache of it, and a launcher that runs the file
// through vm.Script with that cache. The cache is taken from a process that has already executed
// the start-up path, so functions V8 would compile lazily are in it. Node 20 starts children some
// hundred milliseconds faster this way than from sources.

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const dist = join(root, 'dist');
const launcherSource = readFileSync(join(root, 'scripts/launcher/launch.cjs'), 'utf8');
const probe = join(root, 'scripts/launcher/write-cache.cjs');
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

const programs = [
  { name: 'child', entry: 'child/main.ts', warm: [[]] },
  {
    name: 'agentd',
    entry: 'supervisor/main.ts',
    warm: [['--instruction', 'probe', '--intelligence', 'script:final'], ['--version']],
  },
];
const threads = [{ name: 'heartbeat-thread', entry: 'supervisor/surface/heartbeat-thread.ts' }];

mkdirSync(dist, { recursive: true });
// The repository is ESM; what is built here is not, and must not pay for the ESM loader.
replaceFile('package.json', '{ "type": "commonjs" }\n');

const present = [...programs, ...threads].filter(({ name, entry }) => {
  if (existsSync(join(root, entry))) return true;
  console.log(`build: ${entry} does not exist, dist/${name} is skipped`);
  return false;
});
const sources = new Map(
  await Promise.all(present.map(async ({ name, entry }) => [name, await bundle(name, entry)])),
);
for (const [name, source] of sources) replaceFile(`${name}.cjs`, source);
for (const program of programs) {
  if (!sources.has(program.name)) continue;
  replaceFile(`${program.name}.js`, launcherSource.replaceAll('PROGRAM', program.name), 0o755);
  writeCodeCache(program);
}

/** One self-contained CommonJS file; native modules stay outside. `import()` stays lazy in it. */
async function bundle(name, entry) {
  const result = await build({
    absWorkingDir: root,
    entryPoints: [entry],
    bundle: true,
    write: false,
    platform: 'node',
    target: 'node20',
    format: 'cjs',
    // One-byte source: V8 reads it without decoding.
    charset: 'ascii',
    minifyWhitespace: true,
    minifySyntax: true,
    legalComments: 'none',
    external: ['better-sqlite3', 'koffi', 'pg-native'],
    // An external module is reached with require(), which vm.Script needs no hook for.
    supported: { 'dynamic-import': false },
    define: { 'import.meta.url': 'bundleUrl', __AGENTD_VERSION__: JSON.stringify(version) },
    banner: { js: "const bundleUrl=require('node:url').pathToFileURL(__filename).href;" },
    logLevel: 'warning',
  });
  const code = result.outputFiles[0]?.text ?? '';
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the check is for bytes past ASCII
  if (/[^\x00-\x7f]/.test(code)) throw new Error(`dist/${name}.cjs is not ASCII`);
  // The launcher holds this mark against the one in the cache: V8 itself compares lengths only.
  return `${code}//build:${createHash('sha256').update(code).digest('hex')}\n`;
}

/** Runs the program once per warm-up until one succeeds; without a cache the launcher just compiles. */
function writeCodeCache({ name, warm }) {
  const target = join(dist, `${name}.cache`);
  const temporary = `${target}.${process.pid}`;
  for (const args of warm) {
    const run = spawnSync(process.execPath, [probe, join(dist, `${name}.cjs`), temporary, ...args], {
      cwd: dist,
      env: { PATH: process.env.PATH ?? '' },
      input: '',
      timeout: 10_000,
      killSignal: 'SIGKILL',
    });
    if (run.status === 0 && existsSync(temporary)) {
      renameSync(temporary, target);
      return;
    }
    rmSync(temporary, { force: true });
  }
  rmSync(target, { force: true });
  console.log(`build: no code cache for dist/${name}.js, it starts without one`);
}

/** Replaces a file of dist/ in one step: a process starting right now sees the old or the new one. */
function replaceFile(name, content, mode = 0o644) {
  const temporary = join(dist, `${name}.${process.pid}`);
  writeFileSync(temporary, content);
  chmodSync(temporary, mode);
  renameSync(temporary, join(dist, name));
}
