import type { LogFields } from '../telemetry/log.ts';
import type { ClaimTarget } from './lease-keeper.ts';
import type { LeaseRules, LeaseState } from './lease-model.ts';

/**
 * What to say of a claim that was never answered, so that nobody has won or lost it: what happened,
 * and what follows.
 *
 * @param before its state when that became clear
 */
export function unaskedClaim(
  { target, rules }: { readonly target: ClaimTarget; readonly rules: LeaseRules },
  before: LeaseState,
  error: string,
): LogFields {
  const follows =
    before.state === 'offered' && before.abandoned
      ? 'a drain has begun, so it is left to others'
      : `after ${rules.claimAttempts} tries it waits here and is offered again later`;
  return {
    err: { type: 'ClaimUnasked', message: error },
    msg: `${target.item} could not be put to ${target.server}: ${follows}`,
  };
}
