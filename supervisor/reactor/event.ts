import type { RunMessage } from '../children/run.ts';
import type { LeaseMessage } from '../gates/lease-keeper.ts';
import type { DrainStep } from '../lifecycle/drain-machine.ts';
import type { PeerMessage, ResourceInfo } from '../mcp/peers.ts';

/** Everything that can change the supervisor's state. */
export type SupervisorEvent =
  | { readonly type: 'signal'; readonly signal: 'SIGTERM' | 'SIGINT' | 'SIGHUP' }
  /** The idle tick: keeps the heartbeat fresh and the gauges current. */
  | { readonly type: 'tick' }
  /** Something waiting in a queue may be due. */
  | { readonly type: 'pump' }
  /** A clock fired (interval or cron); `key` names the tick. */
  | { readonly type: 'clock'; readonly key: string }
  /** The root run is due: at the start, or the next iteration of a loop. */
  | { readonly type: 'root.due' }
  /** An item held by somebody else may be free by now. */
  | { readonly type: 'revisit'; readonly server: string; readonly uri: string }
  /** A resource has been looked at, for a claim key that depends on it. */
  | {
      readonly type: 'described';
      readonly key: string;
      readonly since: number;
      readonly info: ResourceInfo | null | 'failed';
    }
  /** A resource has been looked at, for a shard key in its metadata. */
  | {
      readonly type: 'shard.looked';
      readonly server: string;
      readonly uri: string;
      readonly cause: string;
      readonly at: number;
      readonly info: ResourceInfo | null;
    }
  | { readonly type: 'drain.request'; readonly cause: string; readonly budgetMs?: number }
  | { readonly type: 'drain.step_done'; readonly step: DrainStep }
  /** A command of an operator, carried out between two events. */
  | { readonly type: 'operator'; readonly act: () => void }
  | PeerMessage
  | LeaseMessage
  | RunMessage;
