/**
 * When something that keeps ending may be started again: exponential backoff with jitter, and a
 * breaker against restart storms. Pure; randomness and time are given in. For warm children,
 * sessions, the loop and stdio servers; never for a one-shot root, which is not restarted.
 */

export interface GovernorConfig {
  /** First delay, doubled with every failure in a row, ms. */
  readonly baseMs: number;
  readonly maxMs: number;
  /** Failures inside the window that open the breaker. */
  readonly threshold: number;
  readonly windowMs: number;
  /** How long the breaker stays open before one probe is let through, ms. */
  readonly coolMs: number;
  /** What a crash before ready counts: it says more about the program than about the work. */
  readonly spawnCrashWeight: number;
}

export const DEFAULT_GOVERNOR: GovernorConfig = {
  baseMs: 500,
  maxMs: 30_000,
  threshold: 5,
  windowMs: 60_000,
  coolMs: 60_000,
  spawnCrashWeight: 3,
};

interface Failure {
  readonly at: number;
  readonly weight: number;
}

export type Governor =
  /** Starts are allowed. */
  | { readonly name: 'closed'; readonly failures: readonly Failure[]; readonly inARow: number }
  /** Waiting out a backoff. */
  | {
      readonly name: 'backing_off';
      readonly failures: readonly Failure[];
      readonly inARow: number;
      readonly until: number;
    }
  /** Too many failures: nothing is started until then. */
  | { readonly name: 'open'; readonly inARow: number; readonly until: number }
  /** One start is out to see whether it holds. */
  | { readonly name: 'probing'; readonly inARow: number };

export type GovernorEvent =
  /** It ended when it should not have. `beforeReady`: it never came up. */
  | { readonly type: 'failed'; readonly now: number; readonly beforeReady: boolean; readonly random: number }
  /** It came up and did its work. */
  | { readonly type: 'succeeded'; readonly now: number }
  /** May it be started now? Answered by the `allow` effect. */
  | { readonly type: 'ask'; readonly now: number };

export type GovernorEffect = 'allow' | 'wait' | 'trip';

interface GovernorRow {
  readonly state: Governor['name'];
  readonly event: string;
  readonly next: Governor['name'];
  readonly effects: readonly GovernorEffect[];
  readonly note: string;
}

/** For the documentation and its test; the guard is named in the event. */
export const GOVERNOR_TRANSITIONS: readonly GovernorRow[] = [
  row('closed', 'ask', 'closed', ['allow'], 'nothing speaks against it'),
  row('closed', 'succeeded', 'closed', [], 'the row of failures ends'),
  row('closed', 'failed', 'backing_off', ['wait'], 'wait, twice as long each time, with jitter'),
  row('closed', 'failed at threshold', 'open', ['trip'], 'a restart storm'),
  row('backing_off', 'ask', 'backing_off', ['wait'], 'too early'),
  row('backing_off', 'ask when due', 'closed', ['allow'], 'the wait is over; the failures still count'),
  row('backing_off', 'succeeded', 'closed', [], 'another instance of it came up'),
  row('backing_off', 'failed', 'backing_off', ['wait'], 'another instance of it failed meanwhile'),
  row('backing_off', 'failed at threshold', 'open', ['trip'], 'a restart storm'),
  row('open', 'ask', 'open', ['wait'], 'refused, not queued for ever'),
  row('open', 'ask when due', 'probing', ['allow'], 'one start is let through'),
  row('open', 'succeeded', 'closed', [], 'one that was already up did its work'),
  row('open', 'failed', 'open', ['wait'], 'known'),
  row('probing', 'ask', 'probing', ['wait'], 'one at a time'),
  row('probing', 'succeeded', 'closed', [], 'it holds'),
  row('probing', 'failed', 'open', ['trip'], 'it does not'),
];

function row(
  state: Governor['name'],
  event: string,
  next: Governor['name'],
  effects: readonly GovernorEffect[],
  note: string,
): GovernorRow {
  return { state, event, next, effects, note };
}

export const GOVERNOR_START: Governor = { name: 'closed', failures: [], inARow: 0 };

/** Delay after the `inARow`th failure in a row, ms: half of it fixed, half of it jitter. */
export function backoffMs(inARow: number, random: number, config: GovernorConfig): number {
  const full = Math.min(config.maxMs, config.baseMs * 2 ** Math.min(inARow - 1, 30));
  return full / 2 + (full / 2) * random;
}

export function governorStep(
  state: Governor,
  event: GovernorEvent,
  config: GovernorConfig = DEFAULT_GOVERNOR,
): { readonly state: Governor; readonly effects: readonly GovernorEffect[] } {
  switch (event.type) {
    case 'succeeded':
      return {
        state: { name: 'closed', failures: 'failures' in state ? state.failures : [], inARow: 0 },
        effects: [],
      };
    case 'ask':
      return ask(state, event.now);
    case 'failed':
      return fail(state, event, config);
  }
}

function ask(
  state: Governor,
  now: number,
): { readonly state: Governor; readonly effects: readonly GovernorEffect[] } {
  switch (state.name) {
    case 'closed':
      return { state, effects: ['allow'] };
    case 'backing_off':
      if (now < state.until) return { state, effects: ['wait'] };
      return {
        state: { name: 'closed', failures: state.failures, inARow: state.inARow },
        effects: ['allow'],
      };
    case 'open':
      if (now < state.until) return { state, effects: ['wait'] };
      return { state: { name: 'probing', inARow: state.inARow }, effects: ['allow'] };
    case 'probing':
      return { state, effects: ['wait'] };
  }
}

function fail(
  state: Governor,
  event: Extract<GovernorEvent, { type: 'failed' }>,
  config: GovernorConfig,
): { readonly state: Governor; readonly effects: readonly GovernorEffect[] } {
  const { now } = event;
  const inARow = state.inARow + 1;
  if (state.name === 'open') return { state: { ...state, inARow }, effects: ['wait'] };
  const open: Governor = { name: 'open', inARow, until: now + config.coolMs };
  if (state.name === 'probing') return { state: open, effects: ['trip'] };
  const weight = event.beforeReady ? config.spawnCrashWeight : 1;
  const failures = [...state.failures.filter(({ at }) => now - at < config.windowMs), { at: now, weight }];
  if (failures.reduce((sum, failure) => sum + failure.weight, 0) >= config.threshold) {
    return { state: open, effects: ['trip'] };
  }
  const until = now + backoffMs(inARow, event.random, config);
  return { state: { name: 'backing_off', failures, inARow, until }, effects: ['wait'] };
}
