import type { OutputContract } from '../../protocol/output-contract.ts';
import { distill, MAX_RESULT_BYTES } from './distill.ts';

/** What became of a final answer. */
export type Verification =
  | { readonly ok: true; readonly result: string }
  /** A sentence the model can act on. */
  | { readonly ok: false; readonly problem: string };

/** Holds a final answer against the output contract, and brings it to the size of a result. */
export function verify(answer: string, contract: OutputContract | null): Verification {
  if (contract === null) return { ok: true, result: distill(answer) };
  const checked = contract.check(answer);
  if (!checked.ok) return checked;
  // Cutting JSON would break it, so a large answer has to be made smaller by its author.
  const bytes = Buffer.byteLength(checked.json);
  if (bytes > MAX_RESULT_BYTES) {
    return { ok: false, problem: `it has ${bytes} bytes and may have ${MAX_RESULT_BYTES}` };
  }
  return { ok: true, result: checked.json };
}
