import { durationText } from '../../telemetry/duration-text.ts';
import { printable } from '../../telemetry/log-text.ts';
import { bytesText, countText, percentText, plural } from '../figures.ts';
import { type InstanceState, instanceLine } from '../instance-view.ts';
import { type Paint, widthOf } from '../style.ts';
import { agentTreeLines } from '../tree-view.ts';
import type { Samples } from './samples.ts';

/** What `agentd top` knows of one instance: how it stands, or why that is not known. */
export type Watched =
  | { readonly kind: 'waiting'; readonly url: string }
  | { readonly kind: 'up'; readonly url: string; readonly state: InstanceState; readonly samples: Samples }
  | { readonly kind: 'down'; readonly url: string; readonly reason: string };

const BAR_CELLS = 10;

/** The lines of one frame, as tall as it takes. Pure: the same figures give the same frame. */
export function frameLines(watched: readonly Watched[], paint: Paint): string[] {
  return watched.flatMap((one, at) => [...(at === 0 ? [] : ['']), ...instanceLines(one, paint)]);
}

/**
 * The part of a frame that fits a screen.
 *
 * @param scroll lines above the window; bounded to what there is
 */
export function visibleLines(
  lines: readonly string[],
  size: { readonly columns: number; readonly rows: number },
  scroll: number,
): string[] {
  const from = Math.max(0, Math.min(scroll, lines.length - size.rows));
  return lines.slice(from, from + size.rows).map((line) => cut(line, size.columns));
}

function instanceLines(watched: Watched, paint: Paint): string[] {
  switch (watched.kind) {
    case 'waiting':
      return [`${paint('bold', printable(watched.url))}  ${paint('dim', 'connecting')}`];
    case 'down':
      return [`${paint('bold', printable(watched.url))}  ${paint('red', printable(watched.reason))}`];
    case 'up': {
      const { state, samples } = watched;
      const rows: readonly (readonly [string, string])[] = [
        ['load', loadText(state, samples, paint)],
        ['gates', gatesText(samples)],
        ['claims', claimsText(samples)],
        ['tokens', tokensText(state, samples)],
        ['model', modelText(samples, paint)],
        ['agents', agentsText(state, samples)],
        ...selfRow(state),
      ];
      return [
        instanceLine(state.status, paint),
        ...rows.map(([name, text]) => `  ${paint('dim', name.padEnd(7))} ${text}`),
        ...agentTreeLines(state.inventory.subagents, paint).map((line) => `  ${line}`),
      ];
    }
  }
}

function loadText({ status, capacity }: InstanceState, samples: Samples, paint: Paint): string {
  const lag = samples.sum('agent_reaction_lag_ms');
  return [
    `${bar(capacity.saturation, paint)} ${Math.round(capacity.saturation * 100)}%`,
    `${status.inflight_reactions} in flight`,
    `${capacity.free_slots} free`,
    `${capacity.warm_children} warm`,
    `backlog ${countText(status.pending_events)}`,
    ...(lag > 0 ? [`oldest ${durationText(lag)}`] : []),
  ].join(' · ');
}

function gatesText(samples: Samples): string {
  return counts(samples, [
    ['agent_reactions_total', 'reactions'],
    ['agent_shard_skipped_total', "other shards'"],
    ['agent_unrouted_events_total', 'unrouted'],
    ['agent_coalesced_events_total', 'coalesced'],
    ['agent_dropped_events_total', 'dropped'],
    ['agent_refusals_total', 'refused'],
    ['agent_limit_exceeded_total', 'limits hit'],
  ]);
}

function claimsText(samples: Samples): string {
  return counts(samples, [
    ['agent_claims_granted_total', 'granted'],
    ['agent_claims_lost_total', 'lost'],
    ['agent_claims_released_total', 'released'],
    ['agent_claims_expired_total', 'expired'],
  ]);
}

function tokensText({ status }: InstanceState, samples: Samples): string {
  const left = status.budget_tokens_remaining;
  return [
    `${countText(samples.sum('agent_tokens_total', ['type', 'in']))} in`,
    `${countText(samples.sum('agent_tokens_total', ['type', 'out']))} out`,
    `${countText(samples.sum('agent_tokens_per_sec'))}/s`,
    left === null ? 'no budget' : `${countText(left)} left`,
  ].join(' · ');
}

function modelText(samples: Samples, paint: Paint): string {
  const latency = (quantile: string): string | null => {
    const ms = samples.value('agent_intelligence_latency_ms', ['quantile', quantile]);
    return ms === null ? null : `${quantile} ${durationText(ms)}`;
  };
  return [
    samples.sum('agent_intel_all_down') > 0 ? paint('red', 'all endpoints down') : paint('green', 'up'),
    plural(samples.sum('agent_intel_calls_total'), 'call'),
    plural(samples.sum('agent_intel_errors_total'), 'error'),
    ...[latency('p50'), latency('p95')].filter((text) => text !== null),
  ].join(' · ');
}

function agentsText({ inventory, status }: InstanceState, samples: Samples): string {
  const { subagents } = inventory;
  const total = (of: (agent: (typeof subagents)[number]) => number | undefined): number =>
    subagents.reduce((sum, agent) => sum + (of(agent) ?? 0), 0);
  const cgroup = samples.value('agent_memory_current_bytes');
  return [
    `${status.active_subagents} running`,
    `CPU ${percentText(total((agent) => agent.cpu_percent))}`,
    `RSS ${bytesText(total((agent) => agent.rss_bytes))}`,
    ...(cgroup === null ? [] : [`cgroup ${bytesText(cgroup)}`]),
    `${plural(samples.sum('agent_subagent_restarts_total'), 'restart')}`,
    `${countText(samples.sum('agent_subagent_stuck_kills_total'))} stuck`,
  ].join(' · ');
}

/** The supervisor itself; instances of older builds do not say. */
function selfRow({ status: { process: own } }: InstanceState): (readonly [string, string])[] {
  if (own === undefined) return [];
  const figures = [`CPU ${percentText(own.cpu_percent)}`, `RSS ${bytesText(own.rss_bytes)}`];
  return [['itself', [...figures, `pid ${own.pid}`].join(' · ')]];
}

function counts(samples: Samples, names: readonly (readonly [string, string])[]): string {
  return names.map(([metric, word]) => `${word} ${countText(samples.sum(metric))}`).join(' · ');
}

function bar(share: number, paint: Paint): string {
  const full = Math.round(Math.max(0, Math.min(1, share)) * BAR_CELLS);
  const style = share >= 0.9 ? 'red' : share >= 0.6 ? 'yellow' : 'green';
  return paint(style, '█'.repeat(full)) + paint('dim', '░'.repeat(BAR_CELLS - full));
}

/** Cuts a line to a width without cutting a colour off. */
function cut(line: string, columns: number): string {
  if (widthOf(line) <= columns) return line;
  let left = columns - 1;
  let kept = '';
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the escapes of the colours
  for (const part of line.split(/(\u001b\[[\d;]+m)/)) {
    if (part.startsWith('\u001b[')) kept += part;
    else {
      const characters = [...part].slice(0, left);
      left -= characters.length;
      kept += characters.join('');
    }
  }
  return `${kept}…`;
}
