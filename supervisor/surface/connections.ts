import type { Server, ServerResponse } from 'node:http';
import type { Server as HttpsServer } from 'node:https';
import type { Socket } from 'node:net';

/**
 * The connections of one listener and the responses in progress on them, so that a shutdown can
 * end what is idle at once. Node's own list counts a connection that has sent nothing yet, or is
 * in its TLS handshake, as busy, and such a client would hold a drain for its whole budget.
 */
export class Connections {
  /** By remote address and port: that pairs a TLS socket with the TCP socket under it. */
  private readonly sockets = new Map<string, Socket>();
  private readonly responses = new Set<ServerResponse>();

  constructor(private readonly server: Server | HttpsServer) {
    server.on('connection', (socket: Socket) => {
      const key = peerKey(socket);
      this.sockets.set(key, socket);
      socket.once('close', () => {
        if (this.sockets.get(key) === socket) this.sockets.delete(key);
      });
    });
    server.on('request', (_req, res: ServerResponse) => {
      this.responses.add(res);
      res.once('close', () => this.responses.delete(res));
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
      const busy = this.finishResponses();
      for (const [key, socket] of this.sockets) if (!busy.has(key)) socket.destroy();
    });
  }

  /** Ends event streams, asks the other responses to be the last on their connection; says whose. */
  private finishResponses(): ReadonlySet<string> {
    const busy = new Set<string>();
    for (const res of this.responses) {
      if (res.socket !== null) busy.add(peerKey(res.socket));
      // An event stream has no end of its own: it is idle, whatever it carried before.
      if (String(res.getHeader('content-type') ?? '').startsWith('text/event-stream')) {
        const { socket } = res;
        res.end(() => socket?.destroySoon());
      } else if (!res.headersSent) {
        res.setHeader('connection', 'close');
      } else {
        res.once('finish', () => res.socket?.destroySoon());
      }
    }
    return busy;
  }
}

function peerKey(socket: Socket): string {
  return `${socket.remoteAddress}|${socket.remotePort}`;
}
