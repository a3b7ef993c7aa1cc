import type { SubagentDocument, SubagentResultDocument } from '../../protocol/management.ts';
import { durationText } from '../telemetry/duration-text.ts';
import { type PrintableLine, printable, textLine } from '../telemetry/log-text.ts';
import { bytesText, countText, percentText } from './figures.ts';
import { type Paint, plain } from './style.ts';

/** Everything an instance knows of one agent. */
export interface AgentDetails {
  readonly agent: SubagentDocument;
  readonly result: SubagentResultDocument | null;
  /** Its latest lines and those of its descendants; null when the stream is not served. */
  readonly events: readonly PrintableLine[] | null;
}

/** One agent in full. */
export function agentLines({ agent, result, events }: AgentDetails, paint: Paint): string[] {
  const { usage } = agent;
  const fields: readonly (readonly [string, string])[] = [
    ['handle', agent.handle],
    ['status', agent.status],
    ...(agent.state === undefined
      ? []
      : ([['state', `${agent.state}, ${agent.health ?? 'healthy'}`]] as const)),
    ...(agent.error === undefined
      ? []
      : ([['error', `${agent.error.type}: ${agent.error.message}`]] as const)),
    ['run', agent.run_id === '' ? '-' : agent.run_id],
    ['parent', agent.parent ?? '-'],
    ['route', agent.route ?? '-'],
    ['steps', countText(usage.steps)],
    ['tokens', `${countText(usage.tokens_in)} in, ${countText(usage.tokens_out)} out`],
    ['subagents', countText(usage.subagents)],
    ...(agent.pid === undefined ? [] : ([['pid', String(agent.pid)]] as const)),
    ...(agent.age_ms === undefined ? [] : ([['age', durationText(agent.age_ms)]] as const)),
    ...(agent.rss_bytes === undefined
      ? []
      : ([
          ['memory', bytesText(agent.rss_bytes)],
          ['cpu', percentText(agent.cpu_percent)],
        ] as const)),
    ['partial', agent.has_usable_partial ? 'usable' : 'none'],
  ];
  return [
    ...fields.map(([name, value]) => `${paint('dim', name.padEnd(10))}${printable(value)}`),
    ...(result === null
      ? []
      : ['', paint('bold', 'result'), ...result.result.split('\n').map((line) => `  ${printable(line)}`)]),
    ...(events === null || events.length === 0
      ? []
      : [
          '',
          paint('bold', 'latest events'),
          ...events.map((line) => `  ${textLine(line, paint !== plain).trimEnd()}`),
        ]),
  ];
}
