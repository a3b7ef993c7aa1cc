import { readdirSync, readFileSync } from 'node:fs';

/** What /proc says of a supervisor's process tree. Linux only. */

export interface Observed {
  readonly pid: number;
  /** One letter: R, S, D, Z, T, … (proc(5)). */
  readonly state: string;
  readonly parent: number;
}

/** Every process that carries the marker of this supervisor. */
export function descendants(supervisor: number): Observed[] {
  const marker = new RegExp(`(?:^|\\0)AGENT_SUPERVISION_ID=\\d+\\.${supervisor}\\.`);
  return processes().filter(({ pid }) => {
    if (pid === supervisor) return false;
    try {
      return marker.test(readFileSync(`/proc/${pid}/environ`, 'utf8'));
    } catch {
      return false;
    }
  });
}

/** Children that have ended and were not waited for. */
export function zombies(supervisor: number): Observed[] {
  return processes().filter(({ parent, state }) => parent === supervisor && state === 'Z');
}

export function openDescriptors(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}

function processes(): Observed[] {
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
      const [state = '?', parent = '0'] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      return [{ pid: Number(name), state, parent: Number(parent) }];
    } catch {
      return [];
    }
  });
}
