import type { CapacityDocument, InventoryDocument, StatusDocument } from '../../protocol/management.ts';
import { durationText } from '../telemetry/duration-text.ts';
import { printable } from '../telemetry/log-text.ts';
import { plural } from './figures.ts';
import type { Paint } from './style.ts';

/** What is read of one instance to show it. */
export interface InstanceState {
  /** The URL it was asked at. */
  readonly url: string;
  readonly status: StatusDocument;
  readonly inventory: InventoryDocument;
  readonly capacity: CapacityDocument;
}

/** The states of an instance that an operator should see first. */
export function standingText(status: StatusDocument, paint: Paint): string {
  const words: string[] = [];
  if (status.draining) words.push(paint('yellow', 'draining'));
  else words.push(status.phase === 'running' ? paint('green', 'running') : paint('yellow', status.phase));
  if (status.paused) words.push(paint('yellow', 'paused'));
  if (status.lame_duck) words.push(paint('yellow', 'lame duck'));
  words.push(
    status.ready
      ? paint('green', 'ready')
      : paint('red', `not ready (${status.reasons.map(printable).join(', ')})`),
  );
  return words.join(', ');
}

/** `reviews  shard 0/2  reactive  running, ready  up 4m05s`. */
export function instanceLine(status: StatusDocument, paint: Paint): string {
  return [
    paint('bold', printable(status.instance)),
    ...(status.shard === null ? [] : [`shard ${printable(status.shard)}`]),
    status.mode,
    standingText(status, paint),
    paint('dim', `up ${durationText(status.uptime_ms)}`),
  ].join('  ');
}

/** How much of what it could do it is doing. */
export function loadLine({ status, capacity }: Pick<InstanceState, 'status' | 'capacity'>): string {
  const budget = status.budget_tokens_remaining;
  return [
    plural(status.active_subagents, 'agent'),
    `${plural(capacity.free_slots, 'slot')} free`,
    `${capacity.warm_children} warm`,
    `${status.pending_events} waiting`,
    `${status.inflight_reactions} in flight`,
    `${Math.round(capacity.saturation * 100)}% saturated`,
    ...(budget === null ? [] : [`${plural(budget, 'token')} left`]),
  ].join(' · ');
}
