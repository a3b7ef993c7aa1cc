import type { TerminalStatus } from './terminal-status.ts';

/** Process exit codes (contract, section 2, version "1.0"). */
export const EXIT = {
  OK: 0,
  FAILURE: 1,
  USAGE: 2,
  PARTIAL: 3,
  INTELLIGENCE: 4,
  SEMANTIC: 5,
  MCP: 6,
  BUDGET: 7,
  TIMEOUT: 124,
  /** Set by the kernel; listed so that help and documentation can explain it. Never returned. */
  KILLED: 137,
  /** Forced past the drain budget. */
  FORCED: 143,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** One row of the exit-code table, for `--help`, the README and the documentation. */
export interface ExitCodeRow {
  readonly code: number;
  readonly name: string;
  readonly when: string;
  readonly intent: 'complete' | 'retriable' | 'terminal' | 'policy' | 'infra';
}

export const EXIT_CODE_TABLE: readonly ExitCodeRow[] = [
  {
    code: 0,
    name: 'EXIT_OK',
    when: 'completed, a loop reached a clean bound, or SIGTERM drained cleanly',
    intent: 'complete',
  },
  {
    code: 1,
    name: 'EXIT_FAILURE',
    when: 'anything not listed below: a crashed run, stalled or looping without a usable partial',
    intent: 'retriable',
  },
  {
    code: 2,
    name: 'EXIT_USAGE',
    when: 'bad flag, configuration or wiring; always before any side effect',
    intent: 'terminal',
  },
  {
    code: 3,
    name: 'EXIT_PARTIAL',
    when: 'exhausted, stalled or looping, but with a usable partial result',
    intent: 'policy',
  },
  {
    code: 4,
    name: 'EXIT_INTELLIGENCE',
    when: 'model endpoint unreachable or it refuses the credential, after retries',
    intent: 'retriable',
  },
  {
    code: 5,
    name: 'EXIT_SEMANTIC',
    when: 'the agent worked and concluded that the task cannot be done',
    intent: 'terminal',
  },
  {
    code: 6,
    name: 'EXIT_MCP',
    when: 'a required MCP server failed to connect, or died for good',
    intent: 'retriable',
  },
  {
    code: 7,
    name: 'EXIT_BUDGET',
    when: 'steps, tokens or the tree budget spent before a result',
    intent: 'policy',
  },
  { code: 124, name: 'EXIT_TIMEOUT', when: 'wall-clock deadline', intent: 'policy' },
  {
    code: 137,
    name: '(128+9)',
    when: 'killed by the kernel; never returned by agentd itself',
    intent: 'infra',
  },
  { code: 143, name: '(128+15)', when: 'forced past the drain budget', intent: 'infra' },
];

/** What a finished one-shot run looked like, as far as its exit code is concerned. */
export interface FinishedRun {
  readonly status: TerminalStatus;
  readonly hasUsablePartial: boolean;
  /** The run failed because no model endpoint could be used. */
  readonly intelligenceFailed?: boolean;
  /** The run was ended by the loss of a required MCP server. */
  readonly mcpFailed?: boolean;
}

/**
 * The exit code of a one-shot run (contract, sections 2 and 3).
 *
 * @param budgetExitCode replaces 3 and 7 only (`--budget-exit-code`)
 */
export function exitCodeFor(run: FinishedRun, budgetExitCode?: number): number {
  const code = baseExitCode(run);
  return budgetExitCode !== undefined && (code === EXIT.PARTIAL || code === EXIT.BUDGET)
    ? budgetExitCode
    : code;
}

function baseExitCode(run: FinishedRun): ExitCode {
  if (run.intelligenceFailed && run.status === 'crashed') return EXIT.INTELLIGENCE;
  if (run.mcpFailed && run.status === 'crashed') return EXIT.MCP;
  switch (run.status) {
    case 'completed':
    case 'cancelled':
      return EXIT.OK;
    case 'refused':
      return EXIT.SEMANTIC;
    case 'exhausted_steps':
    case 'exhausted_tokens':
      return run.hasUsablePartial ? EXIT.PARTIAL : EXIT.BUDGET;
    case 'deadline':
      return EXIT.TIMEOUT;
    case 'stalled':
    case 'loop_detected':
      return run.hasUsablePartial ? EXIT.PARTIAL : EXIT.FAILURE;
    case 'crashed':
      return EXIT.FAILURE;
  }
}
