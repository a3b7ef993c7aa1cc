import type { SubagentDocument } from '../../protocol/management.ts';
import { durationText } from '../telemetry/duration-text.ts';
import { bytesText, countText, percentText } from './figures.ts';
import type { Paint } from './style.ts';
import { type Column, tableLines } from './table.ts';

/** An agent and the instance it runs in. */
export interface AgentRow {
  readonly instance: string;
  readonly agent: SubagentDocument;
}

/** Agents as a table, like ps(1). The instance is a column only where there are several. */
export function agentTable(rows: readonly AgentRow[], several: boolean, paint: Paint): string[] {
  const columns: readonly Column<AgentRow>[] = [
    ...(several ? [{ title: 'INSTANCE', cell: ({ instance }: AgentRow) => instance }] : []),
    { title: 'HANDLE', cell: ({ agent }) => agent.handle },
    { title: 'PID', right: true, cell: ({ agent }) => String(agent.pid ?? '-') },
    {
      title: 'STATE',
      cell: ({ agent }) =>
        agent.health === undefined || agent.health === 'healthy'
          ? (agent.state ?? agent.status)
          : `${agent.state ?? agent.status} (${agent.health})`,
      style: (text, { agent }) =>
        paint((agent.state ?? agent.status) === 'running' ? 'green' : 'yellow', text),
    },
    { title: 'ROUTE', cell: ({ agent }) => agent.route ?? '-' },
    { title: 'STEPS', right: true, cell: ({ agent }) => countText(agent.usage.steps) },
    { title: 'IN', right: true, cell: ({ agent }) => countText(agent.usage.tokens_in) },
    { title: 'OUT', right: true, cell: ({ agent }) => countText(agent.usage.tokens_out) },
    { title: 'CPU', right: true, cell: ({ agent }) => percentText(agent.cpu_percent) },
    { title: 'RSS', right: true, cell: ({ agent }) => bytesText(agent.rss_bytes) },
    {
      title: 'AGE',
      right: true,
      cell: ({ agent }) => (agent.age_ms === undefined ? '-' : durationText(agent.age_ms)),
    },
    { title: 'RUN', cell: ({ agent }) => agent.run_id },
  ];
  return tableLines(columns, rows, paint);
}
