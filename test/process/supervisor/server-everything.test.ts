import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { AgentdProcess } from '../../../scripts/fleet/agentd-process.ts';
import { eventually } from '../../helpers/eventually.ts';
import { supervisedBy } from '../../helpers/leftovers.ts';

const path = (relative: string): string => fileURLToPath(new URL(relative, import.meta.url));
const SERVER = path('../../../node_modules/@modelcontextprotocol/server-everything/dist/index.js');
const PLAYBOOK = path('../../fixtures/supervisor/everything.yaml');

let supervisor: AgentdProcess | null = null;
afterEach(async () => {
  supervisor?.kill('SIGKILL');
  await supervisor?.exited;
});

describe('a supervisor whose source is a server nobody here wrote', () => {
  it('runs for every document it finds and again for an update, and drains', async () => {
    const started = new AgentdProcess('supervisor', [
      'supervise',
      '--instruction',
      'Look at the document.',
      '--intelligence',
      `script:${PLAYBOOK}`,
      '--mcp',
      `everything=stdio:${process.execPath} ${SERVER} stdio`,
      '--route',
      'demo://resource/static/document/**=>spawn,debounce=0',
      '--log-format',
      'json',
    ]);
    supervisor = started;
    const runs = new Map<string, number>();
    const results: boolean[] = [];
    started.onLine((line) => {
      if (line.event === 'trigger.fired') runs.set(String(line.uri), (runs.get(String(line.uri)) ?? 0) + 1);
      if (line.event === 'tool.result') results.push(line.ok === true);
    });
    await started.line('proc.ready', ({ event }) => event === 'proc.ready');
    await eventually('a first run of several documents', () => runs.size > 3, 60_000);
    // A run of one document turns the server's updates on (its next run turns them off again).
    await eventually(
      'a run caused by an update',
      () => [...runs.values()].some((count) => count > 1),
      60_000,
    );
    const { pid } = started;
    started.kill('SIGTERM');
    expect(await started.exited).toEqual({ code: 0, signal: null });
    expect(results.length).toBeGreaterThan(0);
    expect(results).not.toContain(false);
    await eventually('nothing of it to be left', () => supervisedBy(pid).length === 0);
  }, 180_000);
});
