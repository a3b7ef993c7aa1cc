import { fileURLToPath } from 'node:url';
import type { RunLimits, ToolDescriptor } from '../../../protocol/frames.ts';
import { ChildSupervisor } from '../../../supervisor/children/child-supervisor.ts';
import { markedProcesses } from '../../../supervisor/children/leftovers.ts';
import { readStat } from '../../../supervisor/children/proc.ts';
import type { RunMessage, RunOutcome, RunSpec } from '../../../supervisor/children/run.ts';
import { isOwn } from '../../../supervisor/children/supervision-id.ts';
import type { ChildSupervisorOptions } from '../../../supervisor/children/supervisor-options.ts';
import { systemClock } from '../../../supervisor/reactor/clock.ts';
import type { Metrics } from '../../../supervisor/telemetry/metrics.ts';
import { eventually } from '../../helpers/eventually.ts';
import { type RecordedLine, recordingLog } from '../../helpers/null-log.ts';

/** The command of a fixture program. */
export function fixture(name: string, ...args: string[]): readonly [string, ...string[]] {
  const path = fileURLToPath(new URL(`../../fixtures/children/${name}.mjs`, import.meta.url));
  return [process.execPath, path, ...args];
}

/** Metrics that remember: `counted(name, labels)` is the sum of what was added. */
export function recordingMetrics(): Metrics & {
  counted(name: string, labels?: Readonly<Record<string, string>>): number;
} {
  const sums = new Map<string, number>();
  const key = (name: string, labels: object = {}): string => `${name} ${JSON.stringify(labels)}`;
  return {
    add: (name, labels, by = 1) => sums.set(key(name, labels), (sums.get(key(name, labels)) ?? 0) + by),
    set: (name, value, labels) => sums.set(key(name, labels), value),
    remove: () => {},
    observe: () => {},
    render: () => Promise.resolve(''),
    counted: (name, labels) => sums.get(key(name, labels)) ?? 0,
  };
}

export const LIMITS: RunLimits = {
  max_steps: 50,
  max_tokens: 10_000,
  deadline_ms: 120_000,
  tool_timeout_ms: 60_000,
};

export const TREE_LIMITS: ChildSupervisorOptions['limits'] = {
  maxDepth: 4,
  maxChildren: 8,
  maxTotalSubagents: 64,
  treeTokens: 2_000_000,
  noProgressMs: 120_000,
  childMemoryMaxBytes: null,
};

export function tool(server: string, name: string): ToolDescriptor {
  return { name: `${server}__${name}`, server, tool: name, description: '', input_schema: {} };
}

let runs = 0;

export function spec(overrides: Partial<RunSpec> = {}): RunSpec {
  return {
    runId: `run-${++runs}`,
    kind: 'run',
    instruction: 'hello',
    event: null,
    tools: [],
    limits: LIMITS,
    outputContract: null,
    traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
    route: 'route',
    ...overrides,
  };
}

export interface Rig {
  readonly supervisor: ChildSupervisor;
  readonly messages: RunMessage[];
  readonly lines: RecordedLine[];
  readonly metrics: ReturnType<typeof recordingMetrics>;
  /** Launches a run and resolves when the child has its frame. */
  begin(spec: RunSpec): Promise<Extract<RunMessage, { type: 'run.started' }>>;
  /** Resolves with the run's outcome, also when it has settled already. */
  settled(runId: string): Promise<RunOutcome>;
  /** Launches a run and resolves with its outcome. */
  run(spec: RunSpec): Promise<RunOutcome>;
  /** A message of that kind about the run, past or future. */
  message<T extends RunMessage['type']>(
    type: T,
    match: (message: Extract<RunMessage, { type: T }>) => boolean,
  ): Promise<Extract<RunMessage, { type: T }>>;
  /** Stops everything and proves that nothing is left. */
  close(): Promise<void>;
}

/** Graces short enough for a test and long enough for a busy machine. */
export const QUICK = {
  cancelGraceMs: 200,
  termGraceMs: 400,
  killWaitMs: 20_000,
  tickMs: 50,
  readyMs: 20_000,
};

/** A supervisor of real children whose program is a fixture. */
export function rig(
  command: readonly [string, ...string[]],
  overrides: Partial<ChildSupervisorOptions> = {},
): Rig {
  const { log, lines } = recordingLog();
  const metrics = recordingMetrics();
  const messages: RunMessage[] = [];
  const watchers = new Set<() => void>();
  const supervisor = new ChildSupervisor({
    clock: systemClock,
    log,
    metrics,
    command,
    env: process.env,
    limits: TREE_LIMITS,
    callTool: () => Promise.resolve({ text: 'no tools here', is_error: true }),
    model: () => ({
      block: { endpoints: [{ url: 'script:final' }], timeout_ms: 1_000, max_attempts: 1 },
      configured: [0],
    }),
    telemetry: { instance: 'test', logLevel: 'debug', logContent: false },
    ...overrides,
    timings: { firstReadyMs: 20_000, ...QUICK, ...overrides.timings },
    emit: (message) => {
      messages.push(message);
      for (const look of [...watchers]) look();
    },
  });
  const message: Rig['message'] = (type, match) =>
    new Promise((resolve) => {
      const look = (): void => {
        for (const one of messages) {
          if (one.type !== type) continue;
          const typed = one as Extract<RunMessage, { type: typeof type }>;
          if (!match(typed)) continue;
          watchers.delete(look);
          resolve(typed);
          return;
        }
      };
      watchers.add(look);
      look();
    });
  const settled = async (runId: string): Promise<RunOutcome> =>
    (await message('run.settled', ({ outcome }) => outcome.runId === runId)).outcome;
  return {
    supervisor,
    messages,
    lines,
    metrics,
    message,
    settled,
    begin: (one) => {
      supervisor.launch(one);
      return message('run.started', ({ runId }) => runId === one.runId);
    },
    run: (one) => {
      supervisor.launch(one);
      return settled(one.runId);
    },
    close: async () => {
      const left = await supervisor.killAll(30_000);
      if (left.length > 0) throw new Error(`killAll left ${JSON.stringify(left)}`);
      await noSurvivors();
    },
  };
}

/** Running processes that carry this process's marker. */
export function survivors(): number[] {
  return markedProcesses()
    .filter(({ id }) => isOwn(id))
    .map(({ pid }) => pid);
}

export async function noSurvivors(): Promise<void> {
  await eventually(
    `no survivor (still there: ${survivors().join(' ')})`,
    () => survivors().length === 0,
    20_000,
  );
}

/** Whether a pid runs, zombies excluded. */
export function isRunning(pid: number): boolean {
  const stat = readStat(pid);
  return stat !== null && stat.state !== 'Z';
}
