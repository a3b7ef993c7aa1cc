import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { CHECKS } from './checks.ts';
import { Cluster } from './cluster.ts';
import { Engine, missingForContainers, missingPackages } from './engine.ts';
import { buildImage, imageName } from './image.ts';

/**
 * The proof of the image and the manifests: builds the Dockerfile with buildah, plays the manifests as
 * pods with podman, and shows what docs/kubernetes.md promises. Prints a transcript; exits 0 when
 * everything holds, 1 when something does not, and 3 when containers cannot be run here.
 */

const CANNOT_RUN = 3;
const HERE = fileURLToPath(import.meta.url);
/** What the script calls itself with, in namespaces of its own. */
const STAGE = process.env.AGENTD_PROOF_STAGE;
/** A folder that keeps images between runs; without it they are made anew. */
const KEPT = process.env.AGENTD_PROOF_IMAGES;

const say = (text: string): void => void process.stdout.write(`${text}\n`);

async function main(only: RegExp): Promise<number> {
  await installPrograms();
  const missing = await missingForContainers();
  if (missing.length > 0) {
    say('Containers cannot be run here. Missing:');
    for (const one of missing) say(`  - ${one}`);
    say(
      'What needs none runs in `npm test` (kubernetes-*.test.ts, test/process/pid1, test/process/package).',
    );
    return CANNOT_RUN;
  }
  const folder = KEPT ?? (await mkdtemp(join(tmpdir(), 'agentd-image-')));
  const takeAway = async (): Promise<void> => {
    if (KEPT === undefined) await rm(folder, { recursive: true, force: true });
  };
  // A stage that is interrupted ends its pods, and then this goes on to its end. A terminal tells both.
  const stages = new AbortController();
  process.on('SIGINT', () => undefined);
  process.on('SIGTERM', () => stages.abort());
  try {
    await new Engine(folder).configure();
    // The build fetches packages, so it has this machine's network; the pods have one of their own.
    const built = await inNamespaces('build', ['--mount'], folder, only, stages.signal);
    return built === 0 ? await inNamespaces('run', ['--mount', '--net'], folder, only, stages.signal) : built;
  } finally {
    await takeAway();
  }
}

/** Runs a stage where mounts (and the network) are its own. A hybrid cgroup hierarchy is no container's. */
async function inNamespaces(
  stage: string,
  namespaces: readonly string[],
  folder: string,
  only: RegExp,
  cancelSignal: AbortSignal,
): Promise<number> {
  const script = `umount /sys/fs/cgroup/unified 2>/dev/null; exec "$@"`;
  const self = [process.execPath, '--import', import.meta.resolve('tsx'), HERE, only.source, folder];
  const args = [...namespaces, '--propagation', 'private', 'sh', '-c', script, 'sh', ...self];
  const ran = await execa('unshare', args, {
    env: { AGENTD_PROOF_STAGE: stage },
    reject: false,
    stdin: 'ignore',
    stdout: 'inherit',
    stderr: 'inherit',
    cancelSignal,
    forceKillAfterDelay: 30_000,
  });
  return ran.exitCode ?? 1;
}

async function build(engine: Engine): Promise<number> {
  await buildImage(engine, say);
  return 0;
}

async function run(engine: Engine, only: RegExp): Promise<number> {
  const cluster = await Cluster.start(engine, await imageName());
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.on(signal, () => void cluster.close().finally(() => process.exit(1)));
  try {
    return await check(cluster, only);
  } finally {
    await cluster.close();
  }
}

async function check(cluster: Cluster, only: RegExp): Promise<number> {
  let failed = 0;
  for (const { name, run } of CHECKS.filter((one) => only.test(one.name))) {
    try {
      say(`ok        ${name}\n          ${await run(cluster)}`);
    } catch (error) {
      failed += 1;
      say(`FAILED    ${name}`);
      for (let cause: unknown = error; cause instanceof Error; cause = cause.cause)
        say(`          ${cause.message.replaceAll('\n', '\n          ')}`);
    }
  }
  say(failed === 0 ? 'everything holds' : `${failed} of ${CHECKS.length} do not hold`);
  return failed === 0 ? 0 : 1;
}

/** On Debian, what the proof needs is installed where it is missing. Others are told. */
async function installPrograms(): Promise<void> {
  const packages = await missingPackages();
  const has = async (program: string): Promise<boolean> =>
    (await execa('sh', ['-c', `command -v ${program}`], { reject: false })).exitCode === 0;
  if (!(await has('mmdebstrap'))) packages.push('mmdebstrap');
  if (packages.length === 0 || !(await has('apt-get')) || process.getuid?.() !== 0) return;
  const env = { DEBIAN_FRONTEND: 'noninteractive' };
  const args = ['install', '-y', '-q', '--no-install-recommends', ...packages];
  const { exitCode, stderr } = await execa('apt-get', args, { env, reject: false, timeout: 300_000 });
  if (exitCode !== 0) say(`apt-get install ${packages.join(' ')} failed: ${stderr.split('\n').at(-1)}`);
}

const only = new RegExp(process.argv[2] ?? '');
const engine = new Engine(process.argv[3] ?? '');
const stages: Readonly<Record<string, () => Promise<number>>> = {
  build: () => build(engine),
  run: () => run(engine, only),
};
if (!CHECKS.some(({ name }) => only.test(name))) {
  say(`no check has a name that matches ${only}. There are:`);
  for (const { name } of CHECKS) say(`  ${name}`);
  process.exit(2);
}
try {
  process.exitCode = await (stages[STAGE ?? ''] ?? (() => main(only)))();
} catch (error) {
  say(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
