import { readdirSync, readFileSync } from 'node:fs';

/** Pids of living processes that carry the marker of the supervisor with this pid. Linux only. */
export function supervisedBy(supervisor: number): number[] {
  const marker = new RegExp(`(?:^|\\0)AGENT_SUPERVISION_ID=\\d+\\.${supervisor}\\.`);
  return readdirSync('/proc')
    .map(Number)
    .filter((pid) => {
      if (!Number.isInteger(pid) || pid === supervisor) return false;
      try {
        return marker.test(readFileSync(`/proc/${pid}/environ`, 'utf8'));
      } catch {
        return false; // it has gone
      }
    });
}
