import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { execa } from 'execa';

/** podman and buildah, with images, containers and networks of their own in one folder. */

export interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

const PROGRAMS = [
  ['podman', 'podman'],
  ['buildah', 'buildah'],
  ['crun', 'crun'],
  ['/usr/lib/podman/netavark', 'netavark'],
  ['unshare', 'util-linux'],
  ['ip', 'iproute2'],
  ['iptables', 'iptables'],
  ['openssl', 'openssl'],
] as const;

/** Debian's packages that this proof needs and this machine lacks. */
export async function missingPackages(): Promise<string[]> {
  const missing: string[] = [];
  for (const [program, name] of PROGRAMS)
    if ((await execa('sh', ['-c', `command -v ${program}`], { reject: false })).exitCode !== 0)
      missing.push(name);
  return missing;
}

/** What this machine lacks for running containers; empty when nothing. */
export async function missingForContainers(): Promise<string[]> {
  if (process.platform !== 'linux') return ['Linux'];
  const missing = (await missingPackages()).map((name) => `Debian package ${name}, or its like`);
  if (process.getuid?.() !== 0) missing.push('root (mounting and namespaces; run this script with sudo)');
  const filesystems = await readFile('/proc/filesystems', 'utf8');
  if (!/\boverlay$/m.test(filesystems)) missing.push('file system overlay in this kernel');
  const namespaces = ['--mount', '--net', '--propagation', 'private', 'mount', '-t', 'tmpfs', 'none', '/mnt'];
  if (missing.length === 0 && (await execa('unshare', namespaces, { reject: false })).exitCode !== 0)
    missing.push('the right to make namespaces and to mount (CAP_SYS_ADMIN)');
  return missing;
}

export class Engine {
  constructor(readonly folder: string) {}

  /** Settings that suit a machine without an init, and limits that this process is allowed to set. */
  async configure(): Promise<void> {
    const limits = await readFile('/proc/self/limits', 'utf8');
    const hard = (name: string): number =>
      Number(new RegExp(`^${name} +\\S+ +(\\d+)`, 'm').exec(limits)?.[1]);
    // Podman itself has no more processes than the kernel has ids.
    const processes = Math.min(hard('Max processes'), Number(await readFile('/proc/sys/kernel/pid_max')));
    const ulimits = Object.entries({ nofile: hard('Max open files'), nproc: processes }).flatMap(
      ([name, most]) => (Number.isNaN(most) ? [] : [`"${name}=${most}:${most}"`]),
    );
    await mkdir(join(this.folder, 'networks'), { recursive: true });
    await writeFile(
      join(this.folder, 'containers.conf'),
      `[containers]
default_ulimits = [${ulimits.join(', ')}]
log_driver = "k8s-file"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "none"
runtime = "crun"
tmp_dir = "${this.folder}/tmp"
`,
    );
  }

  async podman(...args: string[]): Promise<Ran> {
    const env = { CONTAINERS_CONF: join(this.folder, 'containers.conf') };
    return this.run('podman', ['--network-config-dir', join(this.folder, 'networks'), ...args], env);
  }

  async buildah(...args: string[]): Promise<Ran> {
    // It sets limits of its own.
    return this.run('buildah', args, {});
  }

  private async run(program: string, args: readonly string[], env: Record<string, string>): Promise<Ran> {
    const own = ['--root', join(this.folder, 'storage'), '--runroot', join(this.folder, 'run')];
    const ran = await execa(program, [...own, '--storage-driver', 'overlay', ...args], {
      env,
      reject: false,
      stdin: 'ignore',
      timeout: 900_000,
    });
    return { code: ran.exitCode ?? -1, stdout: ran.stdout.trim(), stderr: ran.stderr.trim() };
  }
}

/** What a command printed. @throws Error with its last words when it failed */
export function succeeded(what: string, { code, stdout, stderr }: Ran): string {
  if (code === 0) return stdout;
  const words = `${stdout}\n${stderr}`.trim().split('\n').slice(-12).join('\n');
  throw new Error(`${what}: exit ${code}\n${words}`);
}
