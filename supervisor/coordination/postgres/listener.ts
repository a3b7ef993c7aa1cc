import { Client } from 'pg';
import { connectionConfig } from './connections.ts';

const CHANNEL = 'agentd_work_pending';
const FIRST_RETRY_MS = 200;
const LAST_RETRY_MS = 10_000;

/** Says to the other servers, inside or outside of a transaction, that items became claimable. */
export const NOTIFY_PENDING = `NOTIFY ${CHANNEL}`;

/**
 * Hears what other servers of the same database say. Whenever the connection was away something
 * may have been missed, so coming back counts as news.
 */
export class PendingListener {
  private client: Client | null = null;
  private timer: NodeJS.Timeout | null = null;
  private failures = 0;
  private closed = false;

  constructor(
    private readonly url: string,
    private readonly onNews: () => void,
    private readonly onTrouble: (error: unknown) => void,
  ) {}

  /** Connects; resolves also when that failed, as it is tried again. */
  async start(): Promise<void> {
    if (this.closed) return;
    const client = new Client(connectionConfig(this.url));
    this.client = client;
    let over = false;
    const lost = (error: unknown): void => {
      if (over) return;
      over = true;
      this.retry(client, error);
    };
    client.on('error', lost);
    client.on('end', () => lost(new Error('the connection ended')));
    client.on('notification', () => this.onNews());
    try {
      await client.connect();
      await client.query(`LISTEN ${CHANNEL}`);
      if (this.failures > 0) this.onNews();
      this.failures = 0;
    } catch (error) {
      lost(error);
    }
  }

  async close(): Promise<void> {
    this.closed = true;
    if (this.timer !== null) clearTimeout(this.timer);
    await this.client?.end().catch(() => undefined);
  }

  private retry(client: Client, error: unknown): void {
    if (this.closed) return;
    if (this.failures === 0) this.onTrouble(error);
    const delay = Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** this.failures);
    this.failures += 1;
    // Whatever is left of the old connection goes away by itself; its fate changes nothing.
    client.end().catch(() => undefined);
    this.timer = setTimeout(() => void this.start(), delay * (0.5 + Math.random() / 2));
    this.timer.unref();
  }
}
