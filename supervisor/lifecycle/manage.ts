import type { RunOutcome } from '../children/run.ts';
import type { ServeConfig } from '../config/config.ts';
import { type RunningManagement, startManagement } from '../surface/management.ts';
import type { Log } from '../telemetry/log.ts';
import { RecentReports } from '../telemetry/reports.ts';
import { runReportOf } from '../telemetry/run-reports.ts';
import { exitCodeOf } from './mode.ts';
import { Operations, type OperationsDeps } from './operations.ts';

/** The management surface of a running supervisor. */
export interface Management {
  readonly url: string;
  /** A run the engine launched is over. */
  runEnded(outcome: RunOutcome): void;
  /** A subagent changed. */
  subagentChanged(handle: string): void;
  /** Time passed or something happened: whoever subscribes to the state is told. */
  stateChanged(): void;
  /** A reload of the configuration has ended, either way. */
  reloaded(): void;
  close(budgetMs: number): Promise<void>;
}

export interface ManageInput extends Omit<OperationsDeps, 'reports' | 'served'> {
  readonly serve: ServeConfig;
  readonly log: Log;
  readonly env: NodeJS.ProcessEnv;
  readonly metricsUrl: string | null;
}

/** State resources that change with nearly every event. */
const STATE = ['status', 'inventory', 'capacity', 'intelligence', 'metrics'] as const;

/**
 * Serves the management surface of one supervisor.
 *
 * @throws AgentdError ADDRESS_IN_USE, LISTEN_REFUSED, TLS_UNUSABLE, SECRET_UNREADABLE (exit 2)
 */
export async function manage(input: ManageInput): Promise<Management> {
  const { serve, log, env, metricsUrl, ring } = input;
  // Of what is read here nothing changes in a reload.
  const config = input.settings.current();
  const reports = new RecentReports();
  let surface: RunningManagement | null = null;
  const operations = new Operations({
    ...input,
    reports,
    served: () => ({
      management: surface?.url ?? serve.url,
      metrics: metricsUrl === null ? false : new URL(metricsUrl).host,
    }),
  });
  const started = await startManagement({ serve, port: operations, log, env });
  surface = started;
  const stopRing = ring.onAppend(() => started.changed('agent://events'));
  return {
    url: started.url,
    runEnded: (outcome) => {
      operations.ended(outcome);
      reports.add(
        runReportOf({
          runId: outcome.runId,
          instance: config.identity.instance,
          mode: config.mode === 'reactive' ? 'once' : config.mode,
          status: outcome.status,
          exitCode: exitCodeOf(outcome, config.budgetExitCode),
          hasUsablePartial: outcome.hasUsablePartial,
          usage: outcome.usage,
          durationMs: outcome.durationMs,
          endedAt: Date.now(),
          traceId: outcome.traceId,
          refusals: outcome.refusals,
        }),
      );
      started.changed(`agent://run/${outcome.runId}`);
      started.changed(`agent://subagent/${outcome.agentPath}`);
    },
    subagentChanged: (handle) => started.changed(`agent://subagent/${handle}`),
    stateChanged: () => {
      for (const name of STATE) started.changed(`agent://${name}`);
    },
    reloaded: () => {
      for (const name of ['config/effective', 'capabilities', 'status']) started.changed(`agent://${name}`);
    },
    close: (budgetMs) => {
      stopRing();
      return started.close(budgetMs);
    },
  };
}
