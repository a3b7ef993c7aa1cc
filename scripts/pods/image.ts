import { access, copyFile, cp, mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { execa } from 'execa';
import { CHECKOUT } from '../package/packed-install.ts';
import { type Engine, succeeded } from './engine.ts';

/** Builds examples/kubernetes/Dockerfile as it is. */

const DOCKERFILE = join(CHECKOUT, 'examples/kubernetes/Dockerfile');
const CERTIFICATES = '/etc/ssl/certs';

/** How the images that the Dockerfile starts from are made where no registry can be reached. */
const STAND_INS: Readonly<Record<string, (engine: Engine) => Promise<void>>> = {
  'debian:bookworm-slim': debian,
  'node:20-bookworm-slim': node,
  'node:20-bookworm': nodeWithCompiler,
};

const qualified = (image: string): string => `docker.io/library/${image}`;

/** Name and tag of the image that the manifests run. */
export async function imageName(): Promise<string> {
  const { version } = JSON.parse(await readFile(join(CHECKOUT, 'package.json'), 'utf8')) as {
    version: string;
  };
  return `agentd:${version}`;
}

/** Pulls what the Dockerfile starts from, or makes stand-ins, and builds it. @throws Error */
export async function buildImage(engine: Engine, say: (text: string) => void): Promise<void> {
  const text = await readFile(DOCKERFILE, 'utf8');
  const bases = [...text.matchAll(/^FROM (\S+)/gm)].map(([, image = '']) => image);
  const unknown = bases.filter((image) => STAND_INS[image] === undefined);
  if (unknown.length > 0) throw new Error(`the Dockerfile starts from ${unknown.join(', ')}: not known here`);
  // Each stand-in is made from the one before it.
  for (const image of Object.keys(STAND_INS)) {
    if ((await engine.buildah('inspect', '--type', 'image', qualified(image))).code === 0) continue;
    const pulled = await engine.buildah('pull', '--quiet', qualified(image));
    if (pulled.code !== 0) await STAND_INS[image]?.(engine);
    say(
      `base      ${image}: ${pulled.code === 0 ? 'pulled' : 'no registry; a stand-in from Debian and this Node'}`,
    );
  }

  const began = Date.now();
  const npmrc = await npmSettings(engine.folder);
  const built = await engine.buildah(
    ...['bud', '--isolation', 'chroot', '--network', 'host', '--pull-never'],
    ...['-v', `${npmrc}:/root/.npmrc:ro`, '-v', `${CERTIFICATES}:${CERTIFICATES}:ro`],
    ...['-f', DOCKERFILE, '-t', await imageName(), CHECKOUT],
  );
  succeeded('building the Dockerfile', built);
  await rm(npmrc);
  say(`built     ${await imageName()} in ${Math.round((Date.now() - began) / 1_000)} s`);
}

/** This machine's npm settings, for the stages that install: mounted, so that no layer has them. */
async function npmSettings(folder: string): Promise<string> {
  const own = await readFile(join(homedir(), '.npmrc'), 'utf8').catch(() => '');
  const lines = own.split('\n').filter((line) => line !== '' && !/^(nodedir|cafile|prefix)\b/.test(line));
  const { stdout: registry } = await execa('npm', ['config', 'get', 'registry']);
  const settings = [`registry=${registry.trim()}`, ...lines, `cafile=${CERTIFICATES}/ca-certificates.crt`];
  // Headers for native modules, which are fetched otherwise.
  if (await exists(headers())) settings.push('nodedir=/usr/local');
  const file = join(folder, 'npmrc');
  await writeFile(file, `${settings.join('\n')}\n`, { mode: 0o600 });
  return file;
}

const headers = (): string => join(dirname(dirname(process.execPath)), 'include/node');
const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );

async function debian(engine: Engine): Promise<void> {
  const tar = join(engine.folder, 'debian.tar');
  const args = ['--variant=minbase', '--include=ca-certificates', 'bookworm', tar];
  // Its root goes with the folder when it is interrupted.
  await execa('mmdebstrap', args, { env: { TMPDIR: engine.folder }, timeout: 600_000 });
  await from(engine, 'scratch', 'debian:bookworm-slim', async (root) => {
    await execa('tar', ['-xf', tar, '-C', root]);
  });
  await rm(tar);
}

async function node(engine: Engine): Promise<void> {
  const { stdout: modules } = await execa('npm', ['root', '--global']);
  await from(engine, qualified('debian:bookworm-slim'), 'node:20-bookworm-slim', async (root) => {
    const local = join(root, 'usr/local');
    await mkdir(join(local, 'lib/node_modules'), { recursive: true });
    await copyFile(process.execPath, join(local, 'bin/node'));
    await cp(join(modules.trim(), 'npm'), join(local, 'lib/node_modules/npm'), { recursive: true });
    for (const name of ['npm', 'npx'])
      await symlink(`../lib/node_modules/npm/bin/${name}-cli.js`, join(local, 'bin', name));
    if (await exists(headers())) await cp(headers(), join(local, 'include/node'), { recursive: true });
  });
}

async function nodeWithCompiler(engine: Engine): Promise<void> {
  const install = 'apt-get update -q && apt-get install -y -q --no-install-recommends g++ make python3';
  await from(engine, qualified('node:20-bookworm-slim'), 'node:20-bookworm', async (_root, container) => {
    const how = ['run', '--isolation', 'chroot', '--network', 'host', container];
    succeeded('installing a compiler', await engine.buildah(...how, 'sh', '-c', install));
  });
}

/** Makes `image` from another one, with what `change` does to its root. */
async function from(
  engine: Engine,
  base: string,
  image: string,
  change: (root: string, container: string) => Promise<void>,
): Promise<void> {
  const container = succeeded(`starting from ${base}`, await engine.buildah('from', base));
  const root = succeeded('mounting', await engine.buildah('mount', container));
  await change(root, container);
  succeeded('unmounting', await engine.buildah('umount', container));
  succeeded(`keeping ${image}`, await engine.buildah('commit', '-q', '--rm', container, qualified(image)));
}
