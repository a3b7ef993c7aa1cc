import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { AgentdProcess } from '../../../scripts/fleet/agentd-process.ts';
import { eventually } from '../../helpers/eventually.ts';
import { supervisedBy } from '../../helpers/leftovers.ts';

let folder = '';
let started: AgentdProcess;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'agentd-signals-'));
  const playbook = join(folder, 'stubborn.yaml');
  await writeFile(
    playbook,
    'turns: [ { fork: [ordinary, ignores_sigterm] }, { sleep: 600000 }, { final: done } ]\n',
  );
  started = new AgentdProcess('one-shot', [
    'run',
    'work',
    '--intelligence',
    `script:${playbook}`,
    '--log-format',
    'json',
  ]);
});
afterEach(async () => {
  started.kill('SIGKILL');
  await started.exited;
  await rm(folder, { recursive: true, force: true });
});

async function nothingLeft(): Promise<void> {
  await eventually('nothing to be left', () => supervisedBy(started.pid).length === 0);
}

describe('signals to a supervisor', () => {
  it('before its child is ready leave no survivor', async () => {
    await started.line('proc.ready', ({ event }) => event === 'proc.ready');
    started.kill('SIGTERM');
    expect(await started.exited).toEqual({ code: 0, signal: null });
    await nothingLeft();
  });

  it('twice at once are one request: a drain that ends with exit 0', async () => {
    await started.line('the run', ({ event }) => event === 'loop.start');
    started.kill('SIGTERM');
    started.kill('SIGTERM');
    expect(await started.exited).toEqual({ code: 0, signal: null });
    await nothingLeft();
  });
});
