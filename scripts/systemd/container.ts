import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';

/** A real systemd in a container over a copy-on-write view of this machine's root (see boot.sh). */

const CHECKOUT = fileURLToPath(new URL('../../', import.meta.url));
const BOOT = fileURLToPath(new URL('./boot.sh', import.meta.url));
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

export interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** What this machine lacks for booting systemd in a container; empty when nothing. */
export async function missingForBoot(): Promise<string[]> {
  if (process.platform !== 'linux') return ['Linux'];
  const missing: string[] = [];
  if (process.getuid?.() !== 0) missing.push('root (mounting and namespaces; run this script with sudo)');
  for (const [program, from] of [
    ['systemd-nspawn', 'Debian package systemd-container'],
    ['systemctl', 'Debian package systemd'],
    ['unshare', 'Debian package util-linux'],
    ['nsenter', 'Debian package util-linux'],
  ] as const) {
    if ((await execa('sh', ['-c', `command -v ${program}`], { reject: false })).exitCode !== 0)
      missing.push(`${program} (${from})`);
  }
  const filesystems = await readFile('/proc/filesystems', 'utf8');
  for (const kind of ['overlay', 'cgroup2', 'tmpfs'])
    if (!new RegExp(`\\b${kind}$`, 'm').test(filesystems)) missing.push(`file system ${kind} in this kernel`);
  if (missing.length === 0 && !(await mayMount())) missing.push('the right to mount (CAP_SYS_ADMIN)');
  return missing;
}

async function mayMount(): Promise<boolean> {
  const probe = ['--mount', '--propagation', 'private', 'mount', '-t', 'tmpfs', 'tmpfs', '/mnt'];
  return (await execa('unshare', probe, { reject: false })).exitCode === 0;
}

/** The container, running. Every path and pid is one inside of it. */
export class Container {
  private constructor(
    private readonly nspawn: ChildProcess,
    /** The container's init, as this machine numbers it. */
    private readonly init: number,
    private readonly folder: string,
    private readonly cgroup: string,
  ) {}

  /**
   * @param stage puts what the container is to find into a folder that is laid over its root
   * @throws Error with the last lines of the boot
   */
  static async boot(stage: (root: string) => Promise<void>): Promise<Container> {
    const folder = await mkdtemp(join(tmpdir(), 'agentd-systemd-'));
    const work = join(folder, 'work');
    await Promise.all([mkdir(work), mkdir(`${work}.stage`)]);
    await stage(`${work}.stage`);
    const cgroup = `agentd-proof-${process.pid}`;
    const args = ['--mount', '--propagation', 'private', BOOT, work, cgroup, CHECKOUT];
    const nspawn = spawn('unshare', args, { stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    for (const stream of [nspawn.stdout, nspawn.stderr])
      stream.on('data', (chunk: Buffer) => {
        output = (output + chunk.toString()).slice(-4_000);
      });
    try {
      const init = await until('the container to have an init', 30_000, async () => {
        if (nspawn.exitCode !== null) throw new Gone(output);
        const pid = nspawn.pid ?? 0;
        const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '');
        const child = Number(children.trim().split(' ')[0]);
        const comm = child > 0 ? await readFile(`/proc/${child}/comm`, 'utf8').catch(() => '') : '';
        return comm.trim() === 'systemd' ? child : undefined;
      });
      const container = new Container(nspawn, init, folder, cgroup);
      await until('systemd to have started', 60_000, async () => {
        if (nspawn.exitCode !== null) throw new Gone(output);
        const { stdout } = await container.run('systemctl', 'is-system-running');
        return /^(running|degraded)/.test(stdout) ? true : undefined;
      });
      return container;
    } catch (error) {
      nspawn.kill('SIGKILL');
      await dispose(folder, cgroup);
      throw error;
    }
  }

  /** Runs a program in the container. */
  async run(...command: string[]): Promise<Ran> {
    return this.enter(['-a', '-r', '-w'], command, { PATH, LANG: 'C.UTF-8', SYSTEMD_COLORS: '0' });
  }

  /** Runs a shell script in the container; throws when it fails. */
  async shell(script: string): Promise<string> {
    const { code, stdout, stderr } = await this.run('bash', '-euc', script);
    if (code !== 0) throw new Error(`exit ${code} of: ${script}\n${stderr.trim() || stdout.trim()}`);
    return stdout.trim();
  }

  /** Runs a script of this folder on this machine's files and the container's network. */
  async beside(script: string, ...args: string[]): Promise<Ran> {
    const file = fileURLToPath(new URL(script, import.meta.url));
    const env = { PATH: process.env.PATH ?? PATH, HOME: process.env.HOME ?? '/root' };
    return this.enter(['-n'], [process.execPath, '--import', import.meta.resolve('tsx'), file, ...args], env);
  }

  private async enter(how: string[], command: string[], env: Record<string, string>): Promise<Ran> {
    const ran = await execa('nsenter', ['-t', String(this.init), ...how, ...command], {
      env,
      extendEnv: false,
      reject: false,
      stdin: 'ignore',
      timeout: 600_000,
    });
    return { code: ran.exitCode ?? -1, stdout: ran.stdout, stderr: ran.stderr };
  }

  /** Ends everything in it, and takes the container's own cgroup and folders away. */
  async close(): Promise<void> {
    const ended = once(this.nspawn, 'exit');
    const off = this.nspawn.exitCode !== null || this.nspawn.signalCode !== null;
    await dispose(this.folder, this.cgroup);
    if (!off) await ended;
  }
}

class Gone extends Error {
  constructor(output: string) {
    super(`the container ended while booting:\n${output.trim()}`);
  }
}

/** Kills the container's cgroup, waits until it is empty and removes it, bottom-up. Touches no other. */
async function dispose(folder: string, cgroup: string): Promise<void> {
  const script = `
    mount -t cgroup2 cgroup2 /sys/fs/cgroup && cd /sys/fs/cgroup
    [ -d ${cgroup} ] || exit 0
    echo 1 > ${cgroup}/cgroup.kill
    for _ in $(seq 200); do grep -q 'populated 0' ${cgroup}/cgroup.events && break; sleep 0.05; done
    find ${cgroup} -depth -type d -exec rmdir {} +`;
  await execa('unshare', ['--mount', '--propagation', 'private', 'bash', '-c', script], { reject: false });
  await rm(folder, { recursive: true, force: true });
}

/** Polls until `probe` gives a value. @throws Error naming `what`; a Gone at once */
export async function until<T>(
  what: string,
  timeoutMs: number,
  probe: () => Promise<T | undefined>,
): Promise<T> {
  const end = performance.now() + timeoutMs;
  let last: unknown;
  for (;;) {
    try {
      const value = await probe();
      if (value !== undefined) return value;
    } catch (error) {
      if (error instanceof Gone) throw error;
      last = error;
    }
    if (performance.now() > end) throw new Error(`gave up waiting for ${what}`, { cause: last });
    await pause(100);
  }
}
