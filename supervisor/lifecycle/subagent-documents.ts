import type { SessionDocument, SubagentDocument } from '../../protocol/management.ts';
import type { AgentRun } from '../children/agent-run.ts';
import type { AgentView } from '../children/agent-view.ts';
import type { RunOutcome } from '../children/run.ts';
import type { SessionView } from '../routing/sessions.ts';

/** Runs and sessions as the documents of the management surface. */

/** @param view what is known of its process; undefined when it has just gone */
export function describeRun(run: AgentRun, view: AgentView | undefined): SubagentDocument {
  return {
    handle: run.path,
    run_id: run.spec.runId,
    parent: run.parent,
    status: 'running',
    route: run.spec.route,
    usage: run.usage,
    has_usable_partial: false,
    ...(view === undefined ? {} : processFigures(view)),
  };
}

function processFigures({ state, health, pid, ageMs, usage }: AgentView): Partial<SubagentDocument> {
  return {
    state,
    health,
    age_ms: ageMs,
    ...(pid === null ? {} : { pid }),
    ...(usage === null
      ? {}
      : { rss_bytes: usage.rssBytes, cpu_percent: Math.round(usage.cpuPercent * 10) / 10 }),
  };
}

export function describeOutcome(outcome: RunOutcome): SubagentDocument {
  return {
    handle: outcome.agentPath,
    run_id: outcome.runId,
    parent: null,
    status: outcome.status,
    route: outcome.route,
    usage: outcome.usage,
    has_usable_partial: outcome.hasUsablePartial,
    ...(outcome.error === null ? {} : { error: outcome.error }),
  };
}

export function describeSession({ session, runId, state, wakes }: SessionView): SessionDocument {
  return { id: session, run_id: runId, state, turns: wakes };
}
