import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { afterEach, describe, expect, it } from 'vitest';
import { startAgentd } from '../../helpers/run-agentd.ts';

let running: ChildProcess | null = null;
afterEach(() => {
  running?.kill('SIGKILL');
  running = null;
});

/** A supervisor that has nothing to do for an hour. */
async function idle(): Promise<{ child: ChildProcess; closed: Promise<unknown[]>; events: string[] }> {
  const child = startAgentd(
    ['run', 'x', '--intelligence', 'script:final', '--mode', 'schedule', '--interval', '1h'],
    { env: { AGENT_LOG_FORMAT: 'json' } },
  );
  running = child;
  const closed = once(child, 'close');
  const events: string[] = [];
  const lines = createInterface({ input: child.stderr ?? process.stdin });
  await new Promise<void>((resolve, reject) => {
    lines.on('line', (line) => {
      const { event } = JSON.parse(line);
      events.push(event);
      if (event === 'proc.ready') resolve();
    });
    child.once('close', (code) => reject(new Error(`ended with ${code} before it was ready`)));
  });
  return { child, closed, events };
}

describe('the signals of the process', () => {
  it.each(['SIGTERM', 'SIGINT'] as const)('%s drains, and the exit code is 0', async (signal) => {
    const { child, closed, events } = await idle();
    child.kill(signal);
    expect(await closed).toEqual([0, null]);
    expect(events).toContain('drain.done');
    expect(events.at(-1)).toBe('proc.exit');
  });
});
