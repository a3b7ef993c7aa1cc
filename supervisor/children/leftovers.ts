import type { Log } from '../telemetry/log.ts';
import { allPids, isSameProcess, readCommand, readEnvironment, readStat } from './proc.ts';
import { isOpen } from './reaping-domain.ts';
import {
  isOwn,
  parseSupervisionId,
  SUPERVISION_VARIABLE,
  type SupervisionId,
  supervisorIsGone,
} from './supervision-id.ts';

/** A running process that carries a supervision marker. */
export interface Marked {
  readonly pid: number;
  readonly startTime: string;
  readonly id: SupervisionId;
}

/** Every running process with a marker this user may read; zombies and ourselves excluded. */
export function markedProcesses(): Marked[] {
  const found: Marked[] = [];
  const exempt = ancestry();
  for (const pid of allPids()) {
    if (exempt.has(pid)) continue;
    const text = readEnvironment(pid, SUPERVISION_VARIABLE);
    if (text === null) continue;
    const id = parseSupervisionId(text);
    const stat = readStat(pid);
    if (id === null || stat === null || stat.state === 'Z') continue;
    found.push({ pid, startTime: stat.startTime, id });
  }
  return found;
}

/**
 * Kills what outlived a dead supervisor, as found at the start of this one, and says so. A
 * supervisor is dead only if its pid and start time are gone from our own pid namespace.
 *
 * @returns the pids that were killed
 */
export function killLeftovers(log: Log): readonly number[] {
  return markedProcesses()
    .filter(({ id }) => supervisorIsGone(id))
    .filter((marked) => killMarked(marked, log, 'its supervisor is dead'))
    .map(({ pid }) => pid);
}

/** Ended processes whose escapees have not been looked for yet, and the timer of the next look. */
const ended = new Map<number, Log | undefined>();
let nextLook: NodeJS.Timeout | undefined;

/** A look reads the environment of every process, so one look serves all that ended lately, ms. */
const LOOK_MS = 250;

/**
 * Kills what a supervised process left behind outside its group, soon. For when there is no
 * subreaper: with one, every orphan comes to us anyway.
 */
export function killEscapeesSoon(serial: number, log: Log | undefined): void {
  ended.set(serial, log);
  nextLook ??= setTimeout(killEscapees, LOOK_MS);
}

function killEscapees(): void {
  nextLook = undefined;
  for (const marked of markedProcesses()) {
    if (isOwn(marked.id) && ended.has(marked.id.serial)) {
      killMarked(marked, ended.get(marked.id.serial), 'it outlived its child');
    }
  }
  ended.clear();
}

/**
 * Kills at once whatever has outlived its child, whoever adopts orphans: this process may end next,
 * and then nobody would look any more (invariant 6).
 */
export function killEveryEscapee(log: Log): void {
  clearTimeout(nextLook);
  nextLook = undefined;
  ended.clear();
  for (const marked of markedProcesses()) {
    if (isOwn(marked.id) && !isOpen(marked.id.serial)) killMarked(marked, log, 'it outlived its child');
  }
}

function killMarked(marked: Marked, log: Log | undefined, why: string): boolean {
  const { pid, startTime, id } = marked;
  const command = readCommand(pid);
  if (!isSameProcess({ pid, startTime })) return false;
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    return false;
  }
  log?.warn('subagent.orphan', {
    msg: `killed a process: ${why}`,
    orphan_pid: pid,
    command,
    instance: id.instance,
    supervisor_pid: id.supervisor.pid,
  });
  return true;
}

/** This process and those it descends from: a supervisor may itself run under a supervisor. */
function ancestry(): ReadonlySet<number> {
  const found = new Set<number>();
  for (let pid = process.pid; pid > 0 && !found.has(pid); pid = readStat(pid)?.parent ?? 0) found.add(pid);
  return found;
}
