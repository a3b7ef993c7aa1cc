import type { RunStart } from '../protocol/frames.ts';
import { compileOutputContract } from '../protocol/output-contract.ts';
import type { LoopParts } from './loop/agent-loop.ts';
import type { Budget } from './loop/budget.ts';
import { systemPrompt } from './loop/prompt.ts';
import type { RunControl } from './loop/run-control.ts';
import { Transcript } from './loop/transcript.ts';
import { openModel } from './model/open-model.ts';
import type { EffectPorts } from './model/scripted-effects.ts';
import type { WarmModel } from './model/warm-model.ts';
import type { Reporter } from './report.ts';
import type { BrokerClient } from './tools/broker-client.ts';
import { selfTools } from './tools/self-tools.ts';

/** The run or session of this process. */
export interface ActiveRun {
  readonly start: RunStart;
  /** Of the task at hand. */
  control: RunControl;
  readonly budget: Budget;
  readonly broker: BrokerClient;
  readonly reporter: Reporter;
}

/**
 * Brings together what the loop works with.
 *
 * @param now monotonic clock, ms
 * @param warm what was held ready of the model
 * @throws AgentdError PLAYBOOK_INVALID, OUTPUT_CONTRACT_INVALID, INTELLIGENCE_UNREACHABLE
 */
export async function prepareRun(
  run: ActiveRun,
  effects: EffectPorts,
  now: () => number,
  warm: Pick<WarmModel, 'take'>,
): Promise<LoopParts> {
  const { broker, budget, control, reporter, start } = run;
  const contract = start.output_contract === undefined ? null : compileOutputContract(start.output_contract);
  return {
    model: await openModel({ run: start, effects, now, held: await warm.take() }),
    broker,
    budget,
    control,
    reporter,
    contract,
    transcript: new Transcript(),
    system: systemPrompt(start),
    tools: { brokered: start.tools, self: selfTools(start.self_tools) },
    toolTimeoutMs: start.limits.tool_timeout_ms,
  };
}
