import { ulid } from 'ulid';
import { AgentdError, errorMessage } from '../protocol/errors.ts';
import { SUPERVISOR_AGENT_ID } from '../protocol/event-line.ts';
import { EXIT } from '../protocol/exit-codes.ts';
import { AGENT_VERSION } from '../protocol/versions.ts';
import { type Host, TOLD_TO_END } from './cli/host.ts';
import type { Config } from './config/config.ts';
import { ConfigInForce } from './config/in-force.ts';
import type { LoadedConfig } from './config/load.ts';
import type { ConfigWatch } from './lifecycle/config-watch.ts';
import { FinalReport } from './lifecycle/final-report.ts';
import { restartsSeen } from './lifecycle/generation.ts';
import { openService } from './lifecycle/systemd-service.ts';
import { buildParts, type Parts } from './parts.ts';
import { systemClock } from './reactor/clock.ts';
import { pathFilter } from './telemetry/aggregate.ts';
import { EventRing } from './telemetry/event-ring.ts';
import { createLog, type LogSink } from './telemetry/logger.ts';
import { createMetrics } from './telemetry/metrics-exporter.ts';
import { adoptTraceparent, traceIdOf } from './telemetry/trace.ts';

/** The idle tick: keeps the heartbeat fresh (contract, section 12). */
const TICK_MS = 1_000;
/** What closing may take after a failed start, ms. */
const CLEANUP_MS = 2_000;

/**
 * Runs one supervisor from its validated configuration to its end.
 *
 * @param load reads the configuration again, for a reload
 * @returns the exit code of the process
 * @throws AgentdError when it cannot start: a port in use (2), a coordination server without work
 *   tools (2), a required MCP server that cannot be reached (6)
 */
export async function runSupervisor(
  loaded: LoadedConfig,
  load: () => Promise<LoadedConfig>,
  host: Host,
): Promise<number> {
  const { config } = loaded;
  const { observability } = config;
  const metrics = createMetrics();
  const runId = config.runId ?? ulid();
  const traceparent = adoptTraceparent(config.traceparent);
  const ring = new EventRing(observability.eventsRing);
  const traceId = traceIdOf(traceparent);
  const log: LogSink = createLog({
    level: observability.logLevel,
    format: observability.logFormat,
    shown: pathFilter(observability.onlyPaths),
    identity: {
      runId,
      agentId: SUPERVISOR_AGENT_ID,
      agentPath: '0',
      comp: 'supervisor',
      pid: process.pid,
      ...(traceId === null ? {} : { traceId }),
    },
    onDropped: (count) => metrics.add('agent_log_lines_dropped_total', {}, count),
    ...(config.serve === null ? {} : { onLine: (line) => ring.append(line) }),
    env: host.env,
  });
  metrics.set('agent_up', 1);
  log.info('proc.start', { version: AGENT_VERSION, mode: config.mode, instance: config.identity.instance });
  log.debug('config.loaded', { routes: config.routes.length, mcp_servers: config.mcpServers.length });
  for (const warning of loaded.warnings) log.warn('config.warn', { msg: warning });
  metrics.add('agent_restarts_total', {}, restartsSeen(host.env, config.identity.instance, log));

  const report = new FinalReport(config, { runId, traceId }, systemClock, log);
  if (await host.toldToEnd()) {
    report.write(EXIT.OK);
    log.info('proc.exit', { exit_code: EXIT.OK, msg: TOLD_TO_END });
    await log.flush(500);
    return EXIT.OK;
  }
  const service = await openService(host.env, systemClock, log);
  let watch: ConfigWatch | null = null;
  const parts = await buildParts({
    settings: new ConfigInForce(config),
    load,
    read: (files) => void watch?.watch(files),
    service,
    host,
    log,
    metrics: report.counting(metrics),
    runId,
    ring,
    traceparent,
    finished: (outcome) => {
      report.take(outcome);
      // stdout carries the agent's result and nothing else.
      if (config.mode !== 'reactive' && outcome.result !== '') host.stdout.write(`${outcome.result}\n`);
    },
  });
  service.observe(() => ({
    running: parts.children.active,
    backlog: parts.supervisor.figures().pending,
    drainLeftMs: parts.drain.remaining(systemClock.now()),
  }));
  const stopSignals = host.onSignal((signal) => parts.post({ type: 'signal', signal }));
  if (config.watchConfig) {
    watch = await watchFiles(loaded.files, log, () => parts.post({ type: 'signal', signal: 'SIGHUP' }));
  }
  const tick = setInterval(() => parts.post({ type: 'tick' }), TICK_MS);
  try {
    const { forced, exitCode: clean } = await live(config, parts, log);
    const exitCode = forced ? EXIT.FORCED : clean;
    report.write(exitCode);
    log.info('proc.exit', { exit_code: exitCode });
    await log.flush(500);
    if (forced) host.raise('SIGTERM');
    return exitCode;
  } catch (error) {
    await Promise.all([parts.children.killAll(CLEANUP_MS), parts.close(CLEANUP_MS)]);
    const exitCode = error instanceof AgentdError ? error.exitCode : EXIT.FAILURE;
    report.write(exitCode);
    log.error('proc.exit', { exit_code: exitCode, msg: errorMessage(error) });
    await log.flush(500);
    throw error;
  } finally {
    clearInterval(tick);
    stopSignals();
    parts.timers.clearAll();
    service.close();
    watch?.close();
  }
}

/** Loaded only where it is asked for. */
async function watchFiles(files: readonly string[], log: LogSink, changed: () => void): Promise<ConfigWatch> {
  const { ConfigWatch } = await import('./lifecycle/config-watch.ts');
  const watch = new ConfigWatch(changed, log);
  await watch.watch(files);
  return watch;
}

/** Starts, becomes ready, and waits for the end of the drain that every life ends with. */
async function live(
  config: Config,
  parts: Parts,
  log: LogSink,
): Promise<{ readonly forced: boolean; readonly exitCode: number }> {
  const { supervisor, drain } = parts;
  // A signal during a slow start must not wait for it.
  const ended = drain.done.then(() => 'ended' as const);
  const connected = parts.connect().then(
    () => 'started' as const,
    (error: unknown) => {
      // A drain closes connections that were still being made: that is no failure to start.
      if (drain.phase === 'running') throw error;
      return ended;
    },
  );
  const outcome = await Promise.race([connected, ended]);
  if (outcome === 'started' && drain.phase === 'running') {
    supervisor.markStarted();
    log.info('proc.ready', {
      mode: config.mode,
      instance: config.identity.instance,
      ...(config.shard.count > 1 ? { shard: `${config.shard.index}/${config.shard.count}` } : {}),
      ...(parts.management === null ? {} : { management_url: parts.management }),
      ...(parts.health.url === null ? {} : { metrics_url: parts.health.url }),
    });
    await parts.startTriggers();
    // Loads native code; after the first work is under way, so that no start waits for it.
    void parts.children.start();
  }
  const { forced } = await drain.done;
  await parts.close(CLEANUP_MS);
  return { forced, exitCode: supervisor.exitCode };
}
