import { z } from 'zod';
import { AgentdError, errorMessage } from './errors.ts';

/** What a check of a final answer came to. */
export type ContractCheck =
  /** `json`: the answer as compact JSON, without the fence it may have stood in. */
  | { readonly ok: true; readonly json: string }
  /** A sentence the model can act on. */
  | { readonly ok: false; readonly problem: string };

export interface OutputContract {
  readonly schema: Record<string, unknown>;
  check(answer: string): ContractCheck;
}

const FENCED = /^```[a-zA-Z]*\s*\n([\s\S]*?)\n?```$/;
const PROBLEMS_SHOWN = 5;

/**
 * Compiles the JSON Schema a final answer must satisfy.
 *
 * @throws AgentdError OUTPUT_CONTRACT_INVALID when the schema uses a keyword that cannot be checked
 */
export function compileOutputContract(schema: Record<string, unknown>): OutputContract {
  let compiled: z.ZodType;
  try {
    compiled = z.fromJSONSchema(schema);
  } catch (error) {
    throw new AgentdError(
      'OUTPUT_CONTRACT_INVALID',
      `the output contract cannot be checked: ${errorMessage(error)}`,
      { cause: error },
    );
  }
  return {
    schema,
    check: (answer) => {
      const text = answer.trim();
      let value: unknown;
      try {
        value = JSON.parse(FENCED.exec(text)?.[1] ?? text);
      } catch (error) {
        return { ok: false, problem: `the answer is not JSON: ${errorMessage(error)}` };
      }
      const checked = compiled.safeParse(value);
      if (checked.success) return { ok: true, json: JSON.stringify(value) };
      const problems = checked.error.issues
        .slice(0, PROBLEMS_SHOWN)
        .map((issue) => `at /${issue.path.map(String).join('/')}: ${issue.message}`);
      return { ok: false, problem: problems.join('; ') };
    },
  };
}
