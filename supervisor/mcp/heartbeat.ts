import { AgentdError } from '../../protocol/errors.ts';
import type { Clock } from '../reactor/clock.ts';
import type { ConnectionEvent } from './connection-machine.ts';

interface Pinged {
  /** @throws AgentdError MCP_TIMEOUT when the peer is silent, MCP_PROTOCOL when it answers with an error */
  ping(timeoutMs: number): Promise<void>;
}

/**
 * Asks a silent peer whether it lives. A peer that just said something is not asked, so a busy
 * connection costs nothing; an idle one costs a request every `intervalMs`.
 */
export class Heartbeat {
  private timer: NodeJS.Timeout | undefined;
  private peer: Pinged | null = null;
  private heardAt = 0;
  private asking = false;

  /** @param intervalMs silence before a ping, and the deadline of the ping */
  constructor(
    private readonly intervalMs: number,
    private readonly clock: Clock,
    private readonly dispatch: (event: ConnectionEvent) => void,
  ) {}

  start(peer: Pinged): void {
    this.stop();
    this.peer = peer;
    this.heardAt = this.clock.now();
    this.arm(this.intervalMs);
  }

  stop(): void {
    clearTimeout(this.timer);
    this.peer = null;
  }

  heard(): void {
    this.heardAt = this.clock.now();
  }

  /** A request failed on the network: do not wait for the next turn. */
  askNow(): void {
    if (this.peer === null || this.asking) return;
    clearTimeout(this.timer);
    void this.ask(this.peer);
  }

  private arm(delayMs: number): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      const silent = this.clock.now() - this.heardAt;
      if (this.peer === null) return;
      if (silent < this.intervalMs) this.arm(this.intervalMs - silent);
      else void this.ask(this.peer);
    }, delayMs);
  }

  private async ask(peer: Pinged): Promise<void> {
    this.asking = true;
    const event = await this.outcome(peer);
    this.asking = false;
    if (this.peer !== peer) return;
    // Armed first: the event may end the connection, which stops this again.
    this.arm(event.type === 'ping_ok' ? this.intervalMs : this.intervalMs / 2);
    this.dispatch(event);
  }

  private async outcome(peer: Pinged): Promise<ConnectionEvent> {
    try {
      await peer.ping(this.intervalMs);
      return { type: 'ping_ok' };
    } catch (error) {
      const at = this.clock.now();
      const code = error instanceof AgentdError ? error.code : null;
      // An error is an answer too, e.g. of a server that does not know ping.
      if (code === 'MCP_PROTOCOL') return { type: 'ping_ok' };
      if (code === 'MCP_TIMEOUT') return { type: 'ping_missed', at };
      const reason = error instanceof Error ? error.message : String(error);
      return { type: 'broken', reason, at };
    }
  }
}
