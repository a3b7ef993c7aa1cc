import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Server as HttpsServer } from 'node:https';
import type { Socket } from 'node:net';

/**
 * The connections of one listener and the responses in progress on them: bounds their number, and
 * lets a shutdown end what is idle at once.
 *
 * Node's own bound refuses whoever comes last, so that a crowd of silent connections would lock
 * everybody out; here the longest idle one gives way. And Node's list of idle connections leaves
 * out those that have sent nothing yet or are in their TLS handshake, and such a client would hold a
 * drain for its whole budget.
 */
export class Connections {
  /** By remote address and port: that pairs a TLS socket with the TCP socket under it. */
  private readonly sockets = new Map<string, Socket>();
  /** Connections without a response in progress, the longest idle first. */
  private readonly idle = new Map<string, Socket>();
  private readonly responses = new Set<ServerResponse>();

  /** @param max connections at a time; beyond it the longest idle is ended, or the new one */
  constructor(
    private readonly server: Server | HttpsServer,
    private readonly max: number,
  ) {
    server.on('connection', (socket: Socket) => this.opened(socket));
    server.on('request', (req: IncomingMessage, res: ServerResponse) => {
      const key = peerKey(req.socket);
      this.idle.delete(key);
      this.responses.add(res);
      res.once('close', () => {
        this.responses.delete(res);
        const socket = this.sockets.get(key);
        if (socket !== undefined) this.idle.set(key, socket);
      });
    });
  }

  /** Closes the listener; see `RunningHttpServer.close`. Calling it again is harmless. */
  close(budgetMs: number): Promise<void> {
    return new Promise((resolve) => {
      const cut = setTimeout(
        () => {
          for (const socket of this.sockets.values()) socket.destroy();
          resolve();
        },
        Math.max(0, budgetMs),
      );
      this.server.close(() => {
        clearTimeout(cut);
        resolve();
      });
      for (const socket of this.idle.values()) socket.destroy();
      for (const res of this.responses) finish(res);
    });
  }

  private opened(socket: Socket): void {
    const key = peerKey(socket);
    this.sockets.set(key, socket);
    this.idle.set(key, socket);
    socket.once('close', () => {
      if (this.sockets.get(key) !== socket) return;
      this.sockets.delete(key);
      this.idle.delete(key);
    });
    if (this.sockets.size <= this.max) return;
    const [oldest] = this.idle;
    const [oldestKey, victim] = oldest ?? [key, socket];
    // Forgotten at once: the next one over the bound must not choose it again before it is closed.
    this.sockets.delete(oldestKey);
    this.idle.delete(oldestKey);
    victim.destroy();
  }
}

/** Ends an event stream; asks any other response to be the last on its connection. */
function finish(res: ServerResponse): void {
  const { socket } = res;
  // An event stream has no end of its own: it is idle, whatever it carried before.
  if (String(res.getHeader('content-type') ?? '').startsWith('text/event-stream')) {
    res.end(() => socket?.destroySoon());
  } else if (!res.headersSent) {
    res.setHeader('connection', 'close');
  } else {
    res.once('finish', () => socket?.destroySoon());
  }
}

function peerKey(socket: Socket): string {
  return `${socket.remoteAddress}|${socket.remotePort}`;
}
