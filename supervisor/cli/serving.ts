import { ulid } from 'ulid';
import { AgentdError } from '../../protocol/errors.ts';
import { LOG_LEVELS, type LogLevel, SUPERVISOR_AGENT_ID } from '../../protocol/event-line.ts';
import { announceServing } from '../lifecycle/systemd-service.ts';
import type { LogSink } from '../telemetry/logger.ts';
import { type Host, TOLD_TO_END } from './host.ts';

/** What `coordinate` and `inbox` share: the log of a serving verb, and serving until a signal. */

/** The log flags as commander gives them; undefined where not given. */
export interface LogFlags {
  readonly logLevel?: string;
  readonly logFormat?: string;
}

export interface Served {
  /** Where clients connect. */
  readonly url: string;
  close(budgetMs: number): Promise<void>;
}

/** Within the 5 s in which a serving verb promises to end. */
const CLOSE_BUDGET_MS = 4000;
const FLUSH_BUDGET_MS = 500;

/**
 * The log of a serving verb: flag, then environment, then text on a terminal and JSON elsewhere.
 *
 * @throws AgentdError USAGE
 */
export async function openServingLog(host: Host, flags: LogFlags): Promise<LogSink> {
  const level = flags.logLevel ?? setting(host, 'AGENT_LOG_LEVEL') ?? 'info';
  const format =
    flags.logFormat ?? setting(host, 'AGENT_LOG_FORMAT') ?? (host.stderr.isTTY === true ? 'text' : 'json');
  if (!isLogLevel(level)) {
    throw new AgentdError('USAGE', `--log-level "${level}" is not one of ${LOG_LEVELS.join(', ')}`);
  }
  if (format !== 'json' && format !== 'text') {
    throw new AgentdError('USAGE', `--log-format "${format}" is neither json nor text`);
  }
  const { createLog } = await import('../telemetry/logger.ts');
  return createLog({
    level,
    format,
    env: host.env,
    identity: {
      runId: ulid(),
      agentId: SUPERVISOR_AGENT_ID,
      agentPath: '0',
      comp: 'mcp',
      pid: process.pid,
    },
  });
}

/**
 * Starts what is to be served, says that it is ready, serves until SIGTERM or SIGINT, drains and
 * resolves to exit code 0. A signal before the start ends it at once; one during the start drains right
 * after it; a second one ends the drain.
 *
 * @throws what `start` throws
 */
export async function serveUntilSignal<S extends Served>(
  host: Host,
  log: LogSink,
  start: () => Promise<S>,
  ready: (served: S) => Readonly<Record<string, unknown>>,
): Promise<number> {
  if (await host.toldToEnd()) {
    log.info('proc.exit', { code: 0, msg: TOLD_TO_END });
    return 0;
  }
  const waiting: ((signal: string) => void)[] = [];
  const nextSignal = (): Promise<string> => new Promise((resolve) => waiting.push(resolve));
  const [first, second] = [nextSignal(), nextSignal()];
  const stopListening = host.onSignal((signal) => {
    if (signal !== 'SIGHUP') waiting.shift()?.(signal);
  });
  try {
    const served = await start();
    log.info('proc.ready', { ...ready(served), url: served.url });
    const stopping = await announceServing(host.env, log, `serving ${served.url}`);
    log.info('proc.shutdown', { signal: await first });
    stopping();
    await Promise.race([served.close(CLOSE_BUDGET_MS), second]);
    log.info('proc.exit', { code: 0 });
    return 0;
  } finally {
    stopListening();
    await log.flush(FLUSH_BUDGET_MS);
  }
}

function setting(host: Host, name: string): string | undefined {
  const value = host.env[name];
  return value === '' ? undefined : value;
}

function isLogLevel(text: string): text is LogLevel {
  return (LOG_LEVELS as readonly string[]).includes(text);
}
