import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';

/** What a transport tells the connection beside the messages. */
export interface LinkEvents {
  /** Something arrived: the peer is alive. */
  heard(): void;
  /** A request failed on the network: worth asking at once whether the peer is still there. */
  suspect(reason: string): void;
  /** Nothing further can come over this transport. */
  broken(reason: string): void;
  /** The event stream was reopened and what was sent meanwhile is lost. */
  gap(): void;
}

/** One transport to one server, of either kind. */
export interface Link {
  readonly transport: Transport;
  /** Why updates cannot be heard, or null. Final once {@link ready} has settled. */
  readonly deaf: string | null;
  /** Settles when it is known whether updates can be heard. */
  readonly ready: Promise<void>;
  /** Why the other side went away, when the transport knows better than `Connection closed`. */
  readonly epitaph: string | null;
  /**
   * Ends the session and the transport, leaving no socket and no process.
   *
   * @param graceful says goodbye first; false when the connection is known to be dead
   */
  close(budgetMs: number, graceful: boolean): Promise<void>;
}
