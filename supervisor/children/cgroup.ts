import { accessSync, constants, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { errorMessage } from '../../protocol/errors.ts';
import type { Log } from '../telemetry/log.ts';

export interface CgroupOptions {
  /** `auto`, or the path of a delegated cgroup v2 folder. */
  readonly root: string;
  /** Bytes one child and its descendants may use; null: unbounded. */
  readonly memoryMaxBytes: number | null;
  /** Processes and threads one child may have; null: unbounded. */
  readonly pidsMax: number | null;
}

/** One child's own cgroup. Nothing here throws: a cgroup is useful, never required. */
export interface CgroupLeaf {
  readonly path: string;
  add(pid: number): void;
  /** Kills every process in it, also those that left the group and the session. */
  kill(): void;
  /** Whether the kernel killed something in it for want of memory. */
  ranOutOfMemory(): boolean;
  /** Removes it; it has to be empty. */
  remove(): void;
}

export interface Cgroups {
  readonly root: string;
  /** Null when it cannot be made. */
  leaf(): CgroupLeaf | null;
}

/** A cgroup v2 folder that was delegated to us, or null where there is none. */
export function openCgroups(options: CgroupOptions, log: Log): Cgroups | null {
  try {
    const root = options.root === 'auto' ? ownCgroup() : options.root;
    if (root === null) return null;
    accessSync(join(root, 'cgroup.procs'), constants.W_OK);
    const controllers = ['memory', 'pids'].filter((name) =>
      read(join(root, 'cgroup.controllers')).includes(name),
    );
    if (controllers.length > 0) enable(root, controllers);
    let made = 0;
    return { root, leaf: () => makeLeaf(join(root, `agentd-${process.pid}-${++made}`), options, log) };
  } catch (error) {
    const level = options.root === 'auto' ? 'debug' : 'warn';
    log.write(level, 'config.warn', { msg: `children get no cgroup of their own: ${errorMessage(error)}` });
    return null;
  }
}

/** This process's own cgroup v2 folder; null without a v2 mount. */
export function ownCgroup(): string | null {
  const path = /^0::(\/.*)$/m.exec(read('/proc/self/cgroup'))?.[1];
  // mountinfo: id parent device root mount-point … - type source options
  const mount = /^\d+ \d+ \S+ \S+ (\S+) .* - cgroup2 /m.exec(read('/proc/self/mountinfo'))?.[1];
  if (path === undefined || mount === undefined) return null;
  return join(mount, path);
}

/** A cgroup with controllers for its children may hold no process itself: ours moves to a leaf. */
function enable(root: string, controllers: readonly string[]): void {
  const enabled = read(join(root, 'cgroup.subtree_control'));
  const missing = controllers.filter((name) => !enabled.includes(name));
  if (missing.length === 0) return;
  try {
    if (read(join(root, 'cgroup.procs')).split('\n').includes(String(process.pid))) {
      mkdirSync(join(root, 'agentd-supervisor'), { recursive: true });
      writeFileSync(join(root, 'agentd-supervisor', 'cgroup.procs'), String(process.pid));
    }
    writeFileSync(join(root, 'cgroup.subtree_control'), missing.map((name) => `+${name}`).join(' '));
  } catch {
    // Somebody else lives there: no limits then, but killing still reaches everything.
  }
}

function makeLeaf(path: string, options: CgroupOptions, log: Log): CgroupLeaf | null {
  try {
    mkdirSync(path);
  } catch (error) {
    log.debug('config.warn', { msg: `a child gets no cgroup of its own: ${errorMessage(error)}` });
    return null;
  }
  if (options.memoryMaxBytes !== null)
    attempt(() => writeFileSync(join(path, 'memory.max'), String(options.memoryMaxBytes)));
  if (options.pidsMax !== null) attempt(() => writeFileSync(join(path, 'pids.max'), String(options.pidsMax)));
  return {
    path,
    add: (pid) => attempt(() => writeFileSync(join(path, 'cgroup.procs'), String(pid))),
    kill: () => attempt(() => writeFileSync(join(path, 'cgroup.kill'), '1')),
    ranOutOfMemory: () => /^oom_kill [1-9]/m.test(read(join(path, 'memory.events'))),
    remove: () => attempt(() => rmdirSync(path)),
  };
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function attempt(act: () => void): void {
  try {
    act();
  } catch {
    // The limits or the removal are refused: the child is supervised all the same.
  }
}
