import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { AgentdProcess, type Line } from '../../../scripts/fleet/agentd-process.ts';
import { runVerb } from '../../helpers/run-verb.ts';

let folder = '';
let supervisor: AgentdProcess | null = null;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'agentd-inspect-'));
});
afterEach(async () => {
  supervisor?.kill('SIGKILL');
  await supervisor?.exited;
  supervisor = null;
  await rm(folder, { recursive: true, force: true });
});

describe('--inspect-child', () => {
  it('opens the inspector in the chosen child alone and holds its deadline back', async () => {
    const book = join(folder, 'book.yaml');
    // The second turn takes longer than the deadline.
    await writeFile(
      book,
      `turns:
  - tool: { name: subagent_spawn, arguments: { instruction: other, disposition: async } }
  - sleep: 4000
  - final: done
`,
    );
    const lines: Line[] = [];
    supervisor = new AgentdProcess('supervisor', [
      'run',
      'debug me',
      ...['--intelligence', `script:${book}`, '--max-depth', '1', '--deadline', '2s'],
      ...['--inspect-child', '0:0', '--aggregate-logs', '--log-format', 'json'],
    ]);
    supervisor.onLine((line) => lines.push(line));
    const debugging = await supervisor.line('the address of the inspector', ({ msg }) =>
      String(msg).startsWith('Debugger listening on ws://127.0.0.1:'),
    );
    const [, host] = /ws:\/\/([^/]+)\//.exec(String(debugging.msg)) ?? [];
    const targets = (await (await fetch(`http://${host}/json/list`)).json()) as { type: string }[];
    expect(targets).toMatchObject([{ type: 'node' }]);
    expect(await supervisor.exited).toEqual({ code: 0, signal: null });
    expect(supervisor.stdout).toBe('done\n');
    const opened = lines.filter(({ msg }) => String(msg).startsWith('Debugger listening'));
    expect(opened.map(({ agent_path }) => agent_path)).toEqual(['0']);
    expect(lines.some(({ event, agent_path }) => event === 'subagent.spawn' && agent_path === '0.1')).toBe(
      true,
    );
  });

  it('is refused where it names no agent', async () => {
    const { code } = await runVerb([
      'run',
      'x',
      '--intelligence',
      'script:final',
      '--inspect-child',
      'first',
    ]);
    expect(code).toBe(2);
  });
});
