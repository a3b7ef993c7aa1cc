import type { RunStart } from '../../protocol/frames.ts';
import type { HeldConnection } from './held-connection.ts';
import type { Model } from './model.ts';
import type { EffectPorts } from './scripted-effects.ts';

const SCRIPT_SCHEME = 'script:';

export interface OpenModelOptions {
  readonly run: RunStart;
  readonly effects: EffectPorts;
  readonly now: () => number;
  /** What this child has held ready of the model. */
  readonly held: HeldConnection | null;
}

/**
 * Opens the model of a run. The first endpoint decides: `script:…` is played here, anything else is
 * reached over HTTP. Loaded when it is needed, so that a child is ready before either is.
 *
 * @throws AgentdError PLAYBOOK_INVALID, INTELLIGENCE_UNREACHABLE
 */
export async function openModel({ run, effects, now, held }: OpenModelOptions): Promise<Model> {
  const [first] = run.model.endpoints;
  if (first?.url.startsWith(SCRIPT_SCHEME)) {
    held?.close();
    const { openScriptedModel } = await import('./scripted.ts');
    const { scriptedEffects } = await import('./scripted-effects.ts');
    return openScriptedModel({
      script: first.url.slice(SCRIPT_SCHEME.length),
      runId: run.run_id,
      agentPath: run.agent_path,
      instruction: run.instruction,
      effects: scriptedEffects(effects),
      now,
    });
  }
  const { connectHttpModel } = await import('./http-model.ts');
  return connectHttpModel({
    block: run.model,
    traceparent: run.telemetry.traceparent,
    now,
    random: Math.random,
    held,
  });
}
