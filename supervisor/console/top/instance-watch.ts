import { setTimeout as pause } from 'node:timers/promises';
import { AgentdError, errorMessage } from '../../../protocol/errors.ts';
import type { ManagementSource } from '../endpoint.ts';
import { readInstance } from '../instance-reads.ts';
import { type ManagementClient, openManagement } from '../management-client.ts';
import type { Watched } from './frame.ts';
import { parseSamples } from './samples.ts';

/** How long an instance that is not there is left alone, ms. */
const RETRY_MS = 1_000;

/** One look at an instance. @throws AgentdError */
export async function lookAt(client: ManagementClient): Promise<Watched> {
  const [state, metrics] = await Promise.all([readInstance(client), client.readText('agent://metrics')]);
  return { kind: 'up', url: client.url, state, samples: parseSamples(metrics ?? '') };
}

/**
 * Looks at an instance again and again until `stopped`, over its restarts and outages.
 *
 * @param source asked for each connection, so that a token can rotate
 * @throws AgentdError of kind configuration: the command line has to change
 */
export async function watchInstance(
  source: () => ManagementSource,
  intervalMs: number,
  seen: (watched: Watched) => void,
  stopped: AbortSignal,
): Promise<void> {
  while (!stopped.aborted) {
    let client: ManagementClient | null = null;
    try {
      client = await openManagement(source());
      while (!stopped.aborted) {
        seen(await lookAt(client));
        await pauseFor(intervalMs, stopped);
      }
    } catch (error) {
      if (error instanceof AgentdError && error.kind === 'configuration') throw error;
      seen({ kind: 'down', url: source().url, reason: errorMessage(error) });
      await pauseFor(RETRY_MS, stopped);
    } finally {
      await client?.close();
    }
  }
}

async function pauseFor(ms: number, signal: AbortSignal): Promise<void> {
  await pause(ms, undefined, { signal }).catch(() => undefined);
}
