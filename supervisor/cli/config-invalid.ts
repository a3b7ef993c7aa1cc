import { AgentdError } from '../../protocol/errors.ts';
import { expandPlain } from '../config/expand.ts';
import type { Host } from './host.ts';

/**
 * Runs an engine verb. A mistake in flags, configuration or wiring ends as exactly one
 * `config.invalid` line on standard error and exit 2 (contract, section 8); other errors pass.
 */
export async function inEngine(
  args: readonly string[],
  host: Host,
  run: () => Promise<number>,
): Promise<number> {
  try {
    return await run();
  } catch (error) {
    if (!(error instanceof AgentdError) || error.kind !== 'configuration') throw error;
    await writeInvalid(error, args, host);
    return error.exitCode;
  }
}

async function writeInvalid(error: AgentdError, args: readonly string[], host: Host): Promise<void> {
  const [{ createLog }, { SUPERVISOR_AGENT_ID }, { announceFailure }, { ulid }] = await Promise.all([
    import('../telemetry/logger.ts'),
    import('../../protocol/event-line.ts'),
    import('../lifecycle/systemd-service.ts'),
    import('ulid'),
  ]);
  const runId = given(args, '--run-id', host) ?? (host.env.AGENT_RUN_ID || null);
  const log = createLog({
    level: 'error',
    format: logFormat(args, host),
    identity: {
      runId: runId ?? ulid(),
      agentId: SUPERVISOR_AGENT_ID,
      agentPath: '0',
      comp: 'supervisor',
      pid: process.pid,
    },
    env: host.env,
  });
  log.error('config.invalid', {
    err: { type: error.code, message: error.message },
    remedy: error.remedy,
  });
  await announceFailure(host.env, error.message);
  await log.flush(2_000);
}

/** The configuration is not there to ask, so only what flags, variables and the terminal say counts. */
function logFormat(args: readonly string[], host: Host): 'json' | 'text' {
  const format = given(args, '--log-format', host) ?? host.env.AGENT_LOG_FORMAT;
  if (format === 'json' || format === 'text') return format;
  return host.stderr.isTTY === true ? 'text' : 'json';
}

/** The value of a flag; undefined where there is none, or one that cannot be expanded. */
function given(args: readonly string[], flag: string, host: Host): string | undefined {
  const at = args.lastIndexOf(flag);
  const text =
    at === -1 ? args.findLast((arg) => arg.startsWith(`${flag}=`))?.slice(flag.length + 1) : args[at + 1];
  let wrong = text === undefined;
  const value = expandPlain(text ?? '', host.env, () => {
    wrong = true;
  });
  return wrong ? undefined : value;
}
