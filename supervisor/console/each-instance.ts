import { AgentdError } from '../../protocol/errors.ts';
import type { Host } from '../cli/host.ts';
import type { ManagementSource } from './endpoint.ts';
import { type ManagementClient, withManagement } from './management-client.ts';

/**
 * Does the same with several instances at once; what one of them answers is shown even when another
 * cannot be reached.
 *
 * @returns the answers in the order of `sources`, and the exit code: 1 when one is missing
 * @throws AgentdError what the only instance throws, and what is wrong with the command line itself
 */
export async function eachInstance<R>(
  host: Host,
  sources: readonly ManagementSource[],
  work: (client: ManagementClient) => Promise<R>,
): Promise<{ readonly answers: readonly R[]; readonly exitCode: number }> {
  const settled = await Promise.allSettled(sources.map((source) => withManagement(source, work)));
  const answers: R[] = [];
  let exitCode = 0;
  for (const outcome of settled) {
    if (outcome.status === 'fulfilled') {
      answers.push(outcome.value);
      continue;
    }
    const error: unknown = outcome.reason;
    if (!(error instanceof AgentdError) || sources.length === 1 || error.kind === 'configuration')
      throw error;
    host.stderr.write(`agentd: ${error.message}\n  ${error.remedy}\n`);
    exitCode = 1;
  }
  return { answers, exitCode };
}
