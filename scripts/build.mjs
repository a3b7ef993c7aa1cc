// Bundles the two programs and the health thread into dist/.
//
// Each program becomes one CommonJS file, a V8 code cache of it, and a launcher that runs the file
// through vm.Script with that cache. The cache is taken from a process that has already executed
// the start-up path, so functions V8 would compile lazily are in it. Node 20 starts children some
// hundred milliseconds faster this way than from sources.

import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const dist = join(root, 'dist');
const launcherSource = readFileSync(join(root, 'scripts/launcher/launch.cjs'), 'utf8');
/**
 * The first thing of the command: from here on a signal is kept for the listeners of supervisor/main.ts,
 * which are there before it can be delivered. Until then its default action would end the process.
 */
const keepSignals =
  "for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => undefined);";
const probe = join(root, 'scripts/launcher/write-cache.cjs');
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

const programs = [
  // A whole run, so that nothing between `ready` and the first result has to be compiled either.
  { name: 'child', entry: 'child/main.ts', warm: [[]], input: probeRun() },
  {
    name: 'agentd',
    entry: 'supervisor/main.ts',
    warm: [['--instruction', 'probe', '--intelligence', 'script:final'], ['--version']],
  },
];
// Large, and needed by few processes: files of their own, loaded when they are first imported.
const libraries = [
  ...['undici', 'yaml'].map((name) => ({ name, entry: name, imported: name, warm: [[]] })),
  // OpenTelemetry, behind the one module that uses it.
  { name: 'otlp', entry: 'supervisor/telemetry/otlp.ts', imported: '../telemetry/otlp.ts', warm: [[]] },
];
// Its libraries wait at their top level, which CommonJS cannot: an ES module, with a door to it that can be required.
const SCREEN = 'top-screen';
const SCREEN_ENTRY = 'supervisor/console/top/ink-screen.ts';
const threads = [{ name: 'heartbeat-thread', entry: 'supervisor/surface/heartbeat-thread.ts' }];

/**
 * Sources import zod as one object, of which a bundler cannot drop anything. As a namespace the
 * forty translations of its messages and everything else unused fall away.
 */
const namespaceZod = {
  name: 'namespace-zod',
  setup(target) {
    target.onLoad({ filter: /\/(protocol|child|supervisor)\/.*\.ts$/ }, async ({ path }) => ({
      contents: (await readFile(path, 'utf8')).replace("import { z } from 'zod'", "import * as z from 'zod'"),
      loader: 'ts',
    }));
  },
};

/** A debugger of react that ink would load where DEV is set; it is not installed. */
const withoutDevtools = {
  name: 'without-devtools',
  setup(target) {
    target.onResolve({ filter: /^react-devtools-core$/ }, ({ path }) => ({ path, namespace: 'absent' }));
    target.onLoad({ filter: /.*/, namespace: 'absent' }, () => ({ contents: 'export default {};' }));
  },
};

mkdirSync(dist, { recursive: true });
// The repository is ESM; what is built here is not, and must not pay for the ESM loader.
replaceFile('package.json', '{ "type": "commonjs" }\n');

const present = [...programs, ...libraries, ...threads].filter(({ name, entry }) => {
  if (entry === name || existsSync(join(root, entry))) return true;
  console.log(`build: ${entry} does not exist, dist/${name} is skipped`);
  return false;
});
const sources = new Map();
for (const result of await Promise.allSettled(present.map(bundle))) {
  if (result.status === 'fulfilled') sources.set(result.value.name, result.value.source);
  else process.exitCode = 1;
}
await bundleScreen();
for (const [name, source] of sources) replaceFile(`${name}.cjs`, source);
const cached = [...libraries, ...programs].filter(({ name }) => sources.has(name));
for (const { name } of cached) {
  const first = name === 'agentd' ? keepSignals : '';
  const launcher = launcherSource.replaceAll('PROGRAM', name).replace('/* SIGNALS */', first);
  replaceFile(`${name}.js`, launcher, 0o755);
}
for (const program of cached) await writeCodeCache(program);

/** One self-contained CommonJS file; native modules stay outside. `import()` stays lazy in it. */
async function bundle({ name, entry }) {
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
    plugins: [separateLibraries(name), namespaceZod],
    // What is wrong is printed here; the others are built all the same.
    logLevel: 'warning',
  });
  const code = result.outputFiles[0]?.text ?? '';
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the check is for bytes past ASCII
  if (/[^\x00-\x7f]/.test(code)) {
    console.error(`build: dist/${name}.cjs is not ASCII`);
    throw new Error('not ASCII');
  }
  // The launcher holds this mark against the one in the cache: V8 itself compares lengths only.
  const mark = createHash('sha256').update(code).digest('hex');
  return { name, source: `${code}//build:${mark}\n` };
}

/** The live screen of `agentd top`, loaded by that verb alone. */
async function bundleScreen() {
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: [SCREEN_ENTRY],
    bundle: true,
    write: false,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    minifyWhitespace: true,
    minifySyntax: true,
    legalComments: 'none',
    define: { 'process.env.NODE_ENV': '"production"' },
    // Some of what is bundled is CommonJS and requires built-in modules.
    banner: { js: "import{createRequire}from'node:module';const require=createRequire(import.meta.url);" },
    plugins: [namespaceZod, withoutDevtools],
    logLevel: 'warning',
  });
  replaceFile(`${SCREEN}.mjs`, outputFiles[0]?.text ?? '');
  replaceFile(
    `${SCREEN}.js`,
    `exports.openScreen=async(options)=>(await import('./${SCREEN}.mjs')).openScreen(options);\n`,
  );
}

/** Leaves the libraries out of every bundle but their own. */
function separateLibraries(bundleName) {
  return {
    name: 'separate-libraries',
    setup(target) {
      target.onResolve({ filter: /./ }, ({ path, kind }) => {
        const library = libraries.find(({ imported }) => imported === path);
        if (library === undefined || library.name === bundleName || kind === 'entry-point') return undefined;
        return { path: `./${library.name}.js`, external: true };
      });
      target.onResolve({ filter: /\/ink-screen\.ts$/ }, (args) =>
        args.kind === 'dynamic-import' ? { path: `./${SCREEN}.js`, external: true } : undefined,
      );
    },
  };
}

/** Runs the program once per warm-up until one succeeds; without a cache the launcher just compiles. */
async function writeCodeCache({ name, warm, input = '' }) {
  const target = join(dist, `${name}.cache`);
  const temporary = `${target}.${process.pid}`;
  for (const args of warm) {
    if ((await runProbe([probe, join(dist, `${name}.cjs`), temporary, ...args], input)) === 0) {
      renameSync(temporary, target);
      return;
    }
    rmSync(temporary, { force: true });
  }
  rmSync(target, { force: true });
  console.log(`build: no code cache for dist/${name}.js, it starts without one`);
}

/** Resolves to the exit code. stdin stays open until the end: a child leaves when it closes. */
function runProbe(args, input) {
  return new Promise((resolve) => {
    const run = spawn(process.execPath, args, {
      cwd: dist,
      env: { PATH: process.env.PATH ?? '' },
      stdio: ['pipe', 'ignore', 'ignore'],
      timeout: 5000,
      killSignal: 'SIGKILL',
    });
    run.stdin.on('error', () => undefined);
    run.stdin.write(input);
    run.once('error', () => resolve(null));
    run.once('exit', (code) => resolve(code));
  });
}

/** The frames of a run that the scripted model completes at once. */
function probeRun() {
  const params = {
    run_id: 'probe',
    agent_id: 'probe',
    agent_path: '0',
    kind: 'run',
    instruction: 'probe',
    tools: [],
    self_tools: [],
    limits: { max_steps: 1, max_tokens: 1, deadline_ms: 5000, tool_timeout_ms: 5000 },
    model: { endpoints: [{ url: 'script:final' }], timeout_ms: 5000, max_attempts: 1 },
    telemetry: { instance: 'probe', traceparent: '', log_level: 'info', log_content: false },
  };
  const frames = [
    { jsonrpc: '2.0', id: 1, method: 'ping' },
    { jsonrpc: '2.0', method: 'run.start', params },
  ];
  return frames.map((frame) => `${JSON.stringify(frame)}\n`).join('');
}

/** Replaces a file of dist/ in one step: a process starting right now sees the old or the new one. */
function replaceFile(name, content, mode = 0o644) {
  const temporary = join(dist, `${name}.${process.pid}`);
  writeFileSync(temporary, content);
  chmodSync(temporary, mode);
  renameSync(temporary, join(dist, name));
}
