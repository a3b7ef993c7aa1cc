import type { ModelTarget } from '../../protocol/frames.ts';
import type { HeldConnection } from './held-connection.ts';

/** What a child without a run holds ready of the model: the client's code, and an open connection. */
export class WarmModel {
  private held: Promise<HeldConnection> | null = null;

  /** @param changed told whenever the connection to an origin has opened or has been lost */
  constructor(private readonly changed: (origin: string, open: boolean) => void) {}

  /** Holds a connection to this endpoint from here on, and no other. Never throws: being warm is a favour. */
  hold(target: ModelTarget): void {
    void this.release();
    this.held = import('./http-connector.ts').then(({ holdConnection }) =>
      holdConnection(target, (open) => this.changed(target.origin, open)),
    );
    this.held.catch(() => undefined);
  }

  /** Hands over what is held; null when nothing is. */
  async take(): Promise<HeldConnection | null> {
    const { held } = this;
    this.held = null;
    return held === null ? null : await held.catch(() => null);
  }

  /** Holds nothing any more. */
  async release(): Promise<void> {
    (await this.take())?.close();
  }
}
