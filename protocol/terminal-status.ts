/** How a run ended (contract, section 3). A closed set: it is a metric label. */
export const TERMINAL_STATUSES = [
  'completed',
  'refused',
  'exhausted_steps',
  'exhausted_tokens',
  'deadline',
  'stalled',
  'loop_detected',
  'cancelled',
  'crashed',
] as const;

export type TerminalStatus = (typeof TERMINAL_STATUSES)[number];
