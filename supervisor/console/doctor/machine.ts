import { accessSync, constants, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { errorMessage } from '../../../protocol/errors.ts';
import { ownCgroup } from '../../children/cgroup.ts';
import { loadKernelCalls } from '../../children/kernel-calls.ts';
import { parentDeathPrefix } from '../../children/parent-death.ts';
import { type Finding, fail, ok, warn } from './finding.ts';

/** What of the machine supervision depends on. */

const LEAST_NODE = 20;
/** Descriptors of a child: three pipes, and those of its start. */
const DESCRIPTORS_PER_CHILD = 8;
const OTHER_DESCRIPTORS = 256;
/** A clock before this is one that was never set. */
const EARLIEST_YEAR = 2025;

export function checkNode(version: string): Finding {
  const major = Number(version.split('.')[0]);
  return major >= LEAST_NODE
    ? ok('node', `version ${version}`)
    : fail('node', `version ${version} is too old`, `Install Node ${LEAST_NODE} or newer.`);
}

/**
 * @param limits text of /proc/self/limits; null where there is none
 * @param agents how many agents may run at once
 */
export function checkDescriptors(limits: string | null, agents: number): Finding {
  const soft = /^Max open files\s+(\S+)/m.exec(limits ?? '')?.[1];
  if (soft === undefined) return ok('open files', 'this platform does not say how many are allowed');
  const allowed = soft === 'unlimited' ? Number.POSITIVE_INFINITY : Number(soft);
  const needed = agents * DESCRIPTORS_PER_CHILD + OTHER_DESCRIPTORS;
  const detail = `${soft} allowed, ${needed} enough for ${agents} agents`;
  if (allowed >= needed) return ok('open files', detail);
  return warn(
    'open files',
    detail,
    'Raise it with LimitNOFILE= in the unit or ulimit -n, or lower --max-total-subagents.',
  );
}

/** @param wanted whether the configuration asks for cgroups */
export function checkCgroup(wanted: boolean): Finding {
  const verdict = wanted ? fail : warn;
  const remedy =
    'Set Delegate=yes in the unit, or start it with `systemd-run --user --scope -p Delegate=yes`. ' +
    "In a pod, the container's memory limit holds for all of them together.";
  const folder = ownCgroup();
  if (folder === null) {
    return verdict('cgroup', 'there is no cgroup v2 here, so children have no hard memory limit', remedy);
  }
  try {
    accessSync(join(folder, 'cgroup.procs'), constants.W_OK);
    const controllers = readFileSync(join(folder, 'cgroup.controllers'), 'utf8').trim().split(' ');
    const missing = ['memory', 'pids'].filter((name) => !controllers.includes(name));
    if (missing.length === 0) return ok('cgroup', `${folder} is delegated, with memory and pids`);
    return verdict('cgroup', `${folder} is delegated, but without ${missing.join(' and ')}`, remedy);
  } catch {
    return verdict('cgroup', `${folder} is not delegated to this user`, remedy);
  }
}

export async function checkSubreaper(): Promise<Finding> {
  if (process.platform !== 'linux') {
    return warn(
      'subreaper',
      `${process.platform} has none, so a descendant that leaves its group may survive`,
      'Run on Linux where agents may start programs of their own.',
    );
  }
  try {
    const kernel = await loadKernelCalls();
    // Harmless in a process that has no children.
    kernel.becomeSubreaper();
    return ok('subreaper', 'orphaned descendants are adopted and reaped');
  } catch (error) {
    return warn(
      'subreaper',
      `not available: ${errorMessage(error)}`,
      'Install the optional native package koffi for this platform (npm ci), or allow prctl(2).',
    );
  }
}

export function checkParentDeath(): Finding {
  const [setpriv] = parentDeathPrefix();
  return setpriv === undefined
    ? warn(
        'setpriv',
        'not found, so children of a killed supervisor end only when they notice',
        'Install util-linux (setpriv with --pdeathsig).',
      )
    : ok('setpriv', `${setpriv}: the kernel kills children whose supervisor dies`);
}

export function checkClock(now: Date): Finding {
  return now.getUTCFullYear() >= EARLIEST_YEAR
    ? ok('clock', now.toISOString())
    : fail(
        'clock',
        `it says ${now.toISOString()}`,
        'Set the clock (timedatectl set-ntp true): TLS needs it.',
      );
}

/** @param agents how many agents may run at once */
export async function checkMachine(agents: number, cgroupWanted: boolean): Promise<Finding[]> {
  return [
    checkNode(process.versions.node),
    checkDescriptors(readOrNull('/proc/self/limits'), agents),
    checkCgroup(cgroupWanted),
    await checkSubreaper(),
    checkParentDeath(),
    checkClock(new Date()),
  ];
}

function readOrNull(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}
