import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** What /proc says of processes. Everything answers null or nothing where there is no /proc. */

/** A pid alone can be recycled; a pid and its start time name one process for ever. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Clock ticks since boot (/proc/PID/stat, field 22); null where /proc is missing. */
  readonly startTime: string | null;
}

export interface ProcessStat {
  readonly pid: number;
  /** One letter: R running, S sleeping, D uninterruptible, T stopped, Z zombie, … */
  readonly state: string;
  readonly parent: number;
  readonly group: number;
  readonly session: number;
  readonly startTime: string;
}

/** The numbers of a process, or null when it is gone. Source: proc_pid_stat(5). */
export function readStat(pid: number): ProcessStat | null {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'latin1');
  } catch {
    return null;
  }
  // The command name may hold spaces and parentheses; the last ")" ends it.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const [state, parent, group, session] = fields;
  const startTime = fields[19];
  if (state === undefined || startTime === undefined) return null;
  return {
    pid,
    state,
    parent: Number(parent),
    group: Number(group),
    session: Number(session),
    startTime,
  };
}

/** Names a process so that its pid can later be told from a recycled one. */
export function identify(pid: number): ProcessIdentity {
  return { pid, startTime: readStat(pid)?.startTime ?? null };
}

/** Whether the pid still belongs to that very process (a zombie counts: its pid is not free yet). */
export function isSameProcess(identity: ProcessIdentity): boolean {
  const stat = readStat(identity.pid);
  if (identity.startTime === null) return stat !== null;
  return stat !== null && stat.startTime === identity.startTime;
}

/** Whether the pid now names another process than `identity`. False where that cannot be known. */
export function isRecycled(identity: ProcessIdentity): boolean {
  const stat = readStat(identity.pid);
  return stat !== null && identity.startTime !== null && stat.startTime !== identity.startTime;
}

/** Every pid of this pid namespace; empty where /proc is missing. */
export function allPids(): number[] {
  try {
    return readdirSync('/proc')
      .filter((name) => name.charCodeAt(0) <= 0x39 && /^\d+$/.test(name))
      .map(Number);
  } catch {
    return [];
  }
}

/** Members of a process group that can still run, that is, all but zombies. */
export function runnableMembers(group: number): ProcessStat[] {
  const members: ProcessStat[] = [];
  for (const pid of allPids()) {
    const stat = readStat(pid);
    if (stat !== null && stat.group === group && stat.state !== 'Z' && stat.state !== 'X') members.push(stat);
  }
  return members;
}

/**
 * Direct children of this process, from the kernel's list where it keeps one, else by scanning. The
 * list is kept by thread; children are started from the main thread, and Linux gives orphans to the
 * first thread of their subreaper that lives, which is the main thread too (kernel/exit.c,
 * find_alive_thread).
 */
export function childrenOfSelf(): number[] {
  try {
    const text = readFileSync(`/proc/self/task/${process.pid}/children`, 'latin1');
    return text.split(' ').filter(Boolean).map(Number).filter(Number.isInteger);
  } catch {
    return allPids().filter((pid) => readStat(pid)?.parent === process.pid);
  }
}

/** One variable of a process's initial environment; null when unset, unreadable or gone. */
export function readEnvironment(pid: number, name: string): string | null {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/environ`, 'utf8');
  } catch {
    return null;
  }
  const prefix = `${name}=`;
  for (const entry of text.split('\0')) if (entry.startsWith(prefix)) return entry.slice(prefix.length);
  return null;
}

/** The first 200 characters of a process's command line; empty when gone. */
export function readCommand(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim().slice(0, 200);
  } catch {
    return '';
  }
}

/** The inode of this process's pid namespace; "0" where unknown. */
export function pidNamespace(): string {
  try {
    return /\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0] ?? '0';
  } catch {
    return '0';
  }
}
