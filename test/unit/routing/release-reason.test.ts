import { describe, expect, it } from 'vitest';
import { releaseReason } from '../../../supervisor/routing/reaction.ts';
import { runOutcome } from '../../helpers/run-outcome.ts';

const error = { type: 'Any', message: 'boom' };

describe('the reason an item is given back for', () => {
  it.each([
    // No child ever had it: the machine's fault, and no attempt of the item.
    [{ status: 'crashed', cause: 'spawn_failed', error }, false, 'not_started: boom'],
    [{ status: 'crashed', cause: 'not_ready', error }, false, 'not_started: boom'],
    [{ status: 'crashed', cause: 'not_ready', error: null }, false, 'not_started'],
    [{ status: 'crashed', cause: 'vanished', error }, false, 'crashed: boom'],
    [{ status: 'cancelled', cause: 'drain', error }, true, 'drain'],
    [{ status: 'cancelled', cause: null, error: null }, true, 'drain'],
    [{ status: 'cancelled', cause: null, error: null }, false, 'cancelled'],
  ] as const)('of %o while draining is %s: %s', (over, draining, reason) => {
    expect(releaseReason(runOutcome(over), draining)).toBe(reason);
  });
});
