import { describe, expect, it } from 'vitest';
import type { SubagentDocument } from '../../../protocol/management.ts';
import { agentTable } from '../../../supervisor/console/agent-table.ts';
import { agentLines } from '../../../supervisor/console/agent-view.ts';
import { bytesText, countText, percentText, plural } from '../../../supervisor/console/figures.ts';
import { coloured, paintFor, plain, widthOf } from '../../../supervisor/console/style.ts';
import { agentTreeLines, treeLines } from '../../../supervisor/console/tree-view.ts';
import { describeOutcome } from '../../../supervisor/lifecycle/subagent-documents.ts';
import { fakeManagementPort } from '../../helpers/fake-management-port.ts';
import { runOutcome } from '../../helpers/run-outcome.ts';

const agent = (handle: string, more: Partial<SubagentDocument> = {}): SubagentDocument => ({
  handle,
  run_id: `run-${handle}`,
  parent: null,
  status: 'running',
  route: null,
  usage: { tokens_in: 1_000, tokens_out: 234, steps: 1, subagents: 0 },
  has_usable_partial: false,
  ...more,
});

describe('what the console draws', () => {
  it('indents each agent under the one that asked for it', () => {
    const agents = [
      agent('0.1', { route: 'work' }),
      agent('0.1.1', { parent: '0.1' }),
      agent('0.1.1.1', { parent: '0.1.1' }),
      agent('0.1.2', { parent: '0.1' }),
      agent('0.2', { state: 'paused', rss_bytes: 50_000_000, cpu_percent: 12.3, age_ms: 61_000 }),
    ];
    expect(agentTreeLines(agents, plain)).toEqual([
      '├─ 0.1  running  route work  1 step  1,234 tokens',
      '│  ├─ 0.1.1  running  1 step  1,234 tokens',
      '│  │  └─ 0.1.1.1  running  1 step  1,234 tokens',
      '│  └─ 0.1.2  running  1 step  1,234 tokens',
      '└─ 0.2  paused  1 step  1,234 tokens  47.7 MiB 12% CPU  1m01s',
    ]);
  });

  it('shows an agent whose parent has ended as a root', () => {
    expect(agentTreeLines([agent('0.1.3', { parent: '0.1' })], plain)).toHaveLength(1);
  });

  it('heads the tree with how the instance stands', () => {
    const port = fakeManagementPort();
    const status = { ...port.status(), ready: false, reasons: ['deaf\u001b[2J'], paused: true, shard: '1/4' };
    const [head = '', load = '', first = ''] = treeLines(
      { url: 'u', status, inventory: port.inventory(), capacity: port.capacity() },
      plain,
    );
    expect(head).toContain('fake  shard 1/4  reactive  running, paused, not ready (deaf\\u001b[2J)');
    expect(load).toBe('│  1 agent · 3 slots free · 0 warm · 0 waiting · 0 in flight · 25% saturated');
    expect(first).toContain('└─ 0.2');
  });

  it('aligns the columns of the table whatever the colours', () => {
    const rows = [
      { instance: 'a', agent: agent('0.1', { state: 'running', pid: 7 }) },
      { instance: 'a', agent: agent('0.1.12', { state: 'finishing', health: 'busy', pid: 123_456 }) },
    ];
    const lines = agentTable(rows, false, plain);
    expect(lines[0]).toMatch(/^HANDLE +PID +STATE +ROUTE/);
    expect(lines[2]).toMatch(/^0\.1\.12 +123456 {2}finishing \(busy\)/);
    const painted = agentTable(rows, false, coloured);
    expect(painted.map(widthOf)).toEqual(lines.map(widthOf));
    expect(agentTable(rows, true, plain)[0]).toMatch(/^INSTANCE/);
  });

  it('shows the result of an agent without letting it steer the terminal', () => {
    const lines = agentLines(
      {
        agent: agent('0.1', { status: 'completed' }),
        result: {
          handle: '0.1',
          run_id: 'r',
          status: 'completed',
          result: 'one\n\u001b]0;owned\u0007two',
          has_usable_partial: false,
        },
        events: [],
      },
      plain,
    );
    expect(lines.slice(-3)).toEqual(['result', '  one', '  \\u001b]0;owned\\u0007two']);
  });

  it('says of one that has ended by which route it came and why it did not end well', () => {
    const error = { type: 'INTELLIGENCE_UNREACHABLE', message: 'no model endpoint can be used' };
    const kept = describeOutcome(runOutcome({ agentPath: '0.2', status: 'crashed', route: 'work', error }));
    const lines = agentLines({ agent: kept, result: null, events: null }, plain);
    expect(lines).toContain('route     work');
    expect(lines).toContain('error     INTELLIGENCE_UNREACHABLE: no model endpoint can be used');
    expect(describeOutcome(runOutcome())).not.toHaveProperty('error');
  });

  it('writes figures as people read them', () => {
    expect([0, 512, 1_024, 50_000_000, 3 * 2 ** 40].map(bytesText)).toEqual([
      '0 B',
      '512 B',
      '1.0 KiB',
      '47.7 MiB',
      '3.0 TiB',
    ]);
    expect([bytesText(null), percentText(undefined), percentText(0), percentText(0.42)]).toEqual([
      '-',
      '-',
      '0%',
      '0.4%',
    ]);
    expect([countText(999), countText(1_234_567), plural(1, 'step'), plural(0, 'step')]).toEqual([
      '999',
      '1,234,567',
      '1 step',
      '0 steps',
    ]);
  });

  it('colours a terminal only, and not against NO_COLOR', () => {
    expect(paintFor({ isTTY: true }, {})('red', 'x')).toBe('\u001b[31mx\u001b[0m');
    expect(paintFor({ isTTY: true }, { NO_COLOR: '1' })('red', 'x')).toBe('x');
    expect(paintFor({}, {})('red', 'x')).toBe('x');
  });
});
