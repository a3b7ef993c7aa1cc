import type { Socket } from 'node:net';
import type { buildConnector } from 'undici';

/** First pause after a connection that failed or was closed, doubled each time, and the longest, ms. */
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;
/** A connection is replaced at this age: what lies between may forget one that is silent, and tells nobody, ms. */
const RENEW_MS = 30_000;
/** A connection that lasted so long was closed for idleness, not in refusal, ms. */
const LASTED_MS = 5_000;

type State =
  | { readonly kind: 'connecting' }
  | {
      readonly kind: 'open';
      readonly socket: Socket;
      readonly since: number;
      readonly renewal: NodeJS.Timeout;
    }
  | { readonly kind: 'waiting'; readonly timer: NodeJS.Timeout }
  /** Taken, or given up. */
  | { readonly kind: 'over' };

/**
 * One connection to a model endpoint, TLS handshake included, on which nothing is sent: it is held
 * open until a run takes it for its first request, and made again when it is lost.
 */
export class HeldConnection {
  private state: State = { kind: 'connecting' };
  private pauseMs = FIRST_PAUSE_MS;

  /**
   * @param origin of the endpoint
   * @param connect opens a connection
   * @param changed told whenever it has opened, and when it has been lost
   * @param now monotonic clock, ms
   */
  constructor(
    readonly origin: string,
    private readonly connect: buildConnector.connector,
    private readonly changed: (open: boolean) => void,
    private readonly now: () => number,
  ) {
    this.open();
  }

  /** Hands the connection over; null when it is not open. It is not made again. */
  take(): Socket | null {
    const { state } = this;
    if (state.kind !== 'open') {
      this.close();
      return null;
    }
    this.state = { kind: 'over' };
    const { renewal, socket } = state;
    clearTimeout(renewal);
    if (socket.destroyed) return null;
    // Read no further: what comes from here on is the taker's.
    socket.pause();
    socket.off('data', this.onData).off('close', this.onClose).off('error', ignore);
    return socket;
  }

  close(): void {
    const { state } = this;
    this.state = { kind: 'over' };
    if (state.kind === 'open') {
      clearTimeout(state.renewal);
      state.socket.destroy();
    } else if (state.kind === 'waiting') clearTimeout(state.timer);
  }

  private open(): void {
    this.state = { kind: 'connecting' };
    const { hostname, port, protocol, host } = new URL(this.origin);
    const target = { host, hostname: hostname.replace(/^\[|\]$/g, ''), protocol, port };
    this.connect(target, (error, socket) => {
      if (error === null) this.onOpen(socket);
      else if (this.state.kind === 'connecting') this.again();
    });
  }

  private onOpen(socket: Socket): void {
    if (this.state.kind !== 'connecting') {
      socket.destroy();
      return;
    }
    const renewal = setTimeout(() => this.renew(), RENEW_MS);
    this.state = { kind: 'open', socket, since: this.now(), renewal };
    // Reading is what notices the end that the other side makes.
    socket.on('error', ignore).on('data', this.onData).on('close', this.onClose);
    this.changed(true);
  }

  /** Nothing was asked, so an answer means that the endpoint is about to hang up. */
  private readonly onData = (): void => {
    if (this.state.kind === 'open') this.state.socket.destroy();
  };

  private readonly onClose = (): void => {
    if (this.state.kind !== 'open') return;
    clearTimeout(this.state.renewal);
    if (this.now() - this.state.since >= LASTED_MS) this.pauseMs = FIRST_PAUSE_MS;
    this.changed(false);
    this.again();
  };

  private renew(): void {
    if (this.state.kind !== 'open') return;
    const { socket } = this.state;
    socket.off('close', this.onClose);
    socket.destroy();
    this.changed(false);
    this.open();
  }

  private again(): void {
    this.state = { kind: 'waiting', timer: setTimeout(() => this.open(), this.pauseMs) };
    this.pauseMs = Math.min(2 * this.pauseMs, LONGEST_PAUSE_MS);
  }
}

function ignore(): void {
  // `close` follows, and says all there is to say.
}
