import { errorMessage } from '../../protocol/errors.ts';
import type { RunStart } from '../../protocol/frames.ts';
import type { AgentRun } from './agent-run.ts';
import type { Child } from './child.ts';

/** The agent somebody wants to debug (`--inspect-child`). */
export interface Inspection {
  readonly path: string;
  /** On loopback; 0: any free one. */
  readonly port: number;
}

/** The deadline of an agent that is debugged: finite, but a person is at work, ms. */
const UNHURRIED_MS = 24 * 3_600_000;

/**
 * The arguments of Node that say where children listen for a debugger. None of them does until it is
 * told to.
 */
export function inspectionArguments(inspection: Inspection | null): readonly string[] {
  return inspection === null ? [] : [`--inspect-port=127.0.0.1:${inspection.port}`];
}

/**
 * Opens the inspector in the child of the chosen agent, before its run begins, and suspends its
 * detectors.
 *
 * @returns the start frame: without haste for that agent, as it was for every other
 */
export function inspectIfChosen(
  child: Pick<Child, 'pid' | 'detectors'>,
  run: AgentRun,
  start: RunStart,
  inspection: Inspection | null | undefined,
): RunStart {
  if (run.path !== inspection?.path || child.pid === null) return start;
  child.detectors.suspend();
  try {
    // Node's own signal for that; the address appears on the child's standard error.
    process.kill(child.pid, 'SIGUSR1');
    const where = inspection.port === 0 ? 'a free port' : `port ${inspection.port}`;
    run.log.warn('subagent.signal', {
      signal: 'SIGUSR1',
      msg: `listens for a debugger on ${where} of 127.0.0.1; its deadlines are suspended`,
    });
  } catch (error) {
    run.log.warn('subagent.signal', { signal: 'SIGUSR1', msg: `no debugger: ${errorMessage(error)}` });
  }
  return { ...start, limits: { ...start.limits, deadline_ms: UNHURRIED_MS } };
}
