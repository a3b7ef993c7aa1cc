import type { ModelBlock, RunStart } from '../../protocol/frames.ts';
import type { AgentRun } from './agent-run.ts';
import { SUBAGENT_TOOLS } from './self-tools.ts';
import type { ChildSettings } from './supervisor-options.ts';

/** The frame that gives a child its run. */
export function startFrame(
  run: AgentRun,
  model: ModelBlock,
  mayBranch: boolean,
  telemetry: ChildSettings['telemetry'],
): RunStart {
  const { spec } = run;
  const { instance, logLevel, logContent } = telemetry;
  return {
    run_id: spec.runId,
    agent_id: run.agentId,
    agent_path: run.path,
    kind: spec.kind,
    instruction: spec.instruction,
    tools: [...spec.tools],
    self_tools: mayBranch ? [...SUBAGENT_TOOLS] : [],
    limits: spec.limits,
    model,
    telemetry: { instance, traceparent: spec.traceparent, log_level: logLevel, log_content: logContent },
    ...(spec.event === null ? {} : { event: spec.event }),
    ...(spec.outputContract === null ? {} : { output_contract: spec.outputContract }),
  };
}
