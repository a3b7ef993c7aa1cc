/**
 * When a run that keeps going is getting nowhere, as a pure decision over its turns.
 *
 * A loop is the same turn, or the same short cycle of turns, over and over. A stall is a row of
 * turns that neither call a tool nor end. Both are given a chance first.
 */

/** Repetitions of one cycle that end the run. */
export const LOOP_REPEATS = 5;
/** Repetitions after which the model is told. */
export const WARN_REPEATS = 3;
const LONGEST_CYCLE = 3;
/** Turns in a row without a usable call or an answer. */
export const STALL_TURNS = 3;
/** Chances to repair an answer that does not satisfy the output contract. */
export const REPAIRS = 2;

export interface Watch {
  /** Signatures of the last turns that called tools, newest last. */
  readonly turns: readonly string[];
  readonly fruitless: number;
  readonly repairs: number;
}

export type TurnEvent =
  /** At least one call could be made. `signature` is the same for the same calls with the same arguments. */
  | { readonly kind: 'called'; readonly signature: string }
  /** Calls, but none that could be made: unknown tools, arguments that do not parse. */
  | { readonly kind: 'unusable' }
  /** Text, or nothing, but no end. */
  | { readonly kind: 'unfinished' }
  /** A final answer that does not satisfy the output contract. */
  | { readonly kind: 'rejected' };

export type Verdict =
  | { readonly kind: 'go_on' }
  | { readonly kind: 'warn' }
  | { readonly kind: 'end'; readonly status: 'loop_detected' | 'stalled' };

export const FRESH_WATCH: Watch = { turns: [], fruitless: 0, repairs: 0 };

const GO_ON: Verdict = { kind: 'go_on' };
const STALLED: Verdict = { kind: 'end', status: 'stalled' };

/** Judges one more turn. */
export function watchTurn(watch: Watch, event: TurnEvent): { watch: Watch; verdict: Verdict } {
  switch (event.kind) {
    case 'called': {
      const turns = [...watch.turns, event.signature].slice(-LOOP_REPEATS * LONGEST_CYCLE);
      return { watch: { ...watch, turns, fruitless: 0 }, verdict: judgeRepeats(turns) };
    }
    case 'unusable':
    case 'unfinished': {
      const fruitless = watch.fruitless + 1;
      return { watch: { ...watch, fruitless }, verdict: fruitless >= STALL_TURNS ? STALLED : GO_ON };
    }
    case 'rejected': {
      const repairs = watch.repairs + 1;
      return { watch: { ...watch, repairs }, verdict: repairs > REPAIRS ? STALLED : GO_ON };
    }
  }
}

function judgeRepeats(turns: readonly string[]): Verdict {
  let warn = false;
  for (let period = 1; period <= LONGEST_CYCLE; period++) {
    const repeats = cycles(turns, period);
    if (repeats >= LOOP_REPEATS) return { kind: 'end', status: 'loop_detected' };
    warn ||= repeats === WARN_REPEATS;
  }
  return warn ? { kind: 'warn' } : GO_ON;
}

/** How often the last `period` turns have occurred in a row, ending now. */
function cycles(turns: readonly string[], period: number): number {
  let same = 0;
  for (let index = turns.length - 1; index - period >= 0 && turns[index] === turns[index - period]; index--) {
    same++;
  }
  return turns.length < period ? 0 : 1 + Math.floor(same / period);
}
