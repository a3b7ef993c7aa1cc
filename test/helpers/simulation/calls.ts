import type {
  ClaimReply,
  ClaimTarget,
  LeaseCalls,
  LeaseReply,
} from '../../../supervisor/gates/lease-keeper.ts';
import type { SimulatedLedger } from './simulated-ledger.ts';
import { transport, type Wire } from './wire.ts';

/** The calls of one process to the ledger, over its network. */
export function ledgerCalls(
  ledger: SimulatedLedger,
  caller: {
    /** Its name to the ledger. */
    readonly name: string;
    readonly wire: () => Wire;
    /** A grant has reached it. */
    readonly received: (claimKey: string) => void;
  },
): LeaseCalls {
  const { name, wire, received } = caller;
  const call = <T extends ClaimReply | LeaseReply>(
    target: ClaimTarget,
    deadlineMs: number,
    perform: () => T,
  ): Promise<T> =>
    transport(wire(), deadlineMs, perform, (reply) => {
      if (reply.kind === 'granted') received(target.claimKey);
    });
  return {
    claim: (target, deadline) =>
      call(target, deadline, () => ledger.claim(target.claimKey, name, target.ttlMs)),
    renew: (target, lease, deadline) =>
      call(target, deadline, () => ledger.renew(target.claimKey, lease, name, target.ttlMs)),
    ack: (target, lease, _result, deadline) =>
      call(target, deadline, () => ledger.ack(target.claimKey, lease, name)),
    release: (target, lease, reason, deadline) =>
      call(target, deadline, () => ledger.release(target.claimKey, lease, name, reason)),
  };
}
