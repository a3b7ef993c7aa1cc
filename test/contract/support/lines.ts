import { expect } from 'vitest';
import { EVENT_NAMES } from '../../../protocol/event-line.ts';
import type { Binary, Line } from './binary.ts';
import { schemaProblems } from './schemas.ts';

/** The contract's order of the fields every line has. */
const CANONICAL = ['ts', 'level', 'event', 'run_id', 'agent_id', 'agent_path', 'comp', 'pid'];
const VOCABULARY: ReadonlySet<unknown> = new Set(EVENT_NAMES);

/** What is wrong with telemetry lines; empty when nothing is. */
export function lineProblems(lines: readonly Line[]): string[] {
  return lines.flatMap((line) => {
    const problems = schemaProblems('event_line', line);
    if (!VOCABULARY.has(line.event)) problems.push(`${String(line.event)} is not in the vocabulary`);
    const first = Object.keys(line).slice(0, CANONICAL.length);
    if (first.join() !== CANONICAL.join()) problems.push(`the line begins with ${first.join()}`);
    return problems.map((problem) => `${problem}: ${JSON.stringify(line)}`);
  });
}

/** Every line of a process keeps the contract, and there are some. */
export function expectContractLines(binary: Binary): void {
  expect(binary.lines.length).toBeGreaterThan(0);
  expect(lineProblems(binary.lines)).toEqual([]);
}
