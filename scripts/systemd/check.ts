import type { Machine } from './machine.ts';

/** One claim about agentd under systemd, shown on the running machine. */
export interface Check {
  readonly name: string;
  /** @returns what was seen, in one line @throws Error when it does not hold */
  readonly run: (machine: Machine) => Promise<string>;
}
