import { descendants } from '../../scripts/fleet/processes.ts';

/** Pids of living processes that carry the marker of the supervisor with this pid. Linux only. */
export function supervisedBy(supervisor: number): number[] {
  return descendants(supervisor).map(({ pid }) => pid);
}
