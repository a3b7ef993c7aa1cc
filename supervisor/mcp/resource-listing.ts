import { errorMessage } from '../../protocol/errors.ts';
import type { Clock } from '../reactor/clock.ts';
import type { Log } from '../telemetry/log.ts';

/** What a listing needs of a live session. */
export interface ListingSession {
  /** Whether the server announces new and removed resources. */
  readonly announcesLists: boolean;
  list(): Promise<readonly { readonly uri: string }[]>;
}

export interface ResourceListingOptions {
  readonly server: string;
  readonly clock: Clock;
  readonly log: Log;
  /** How often a server that announces no changes is listed, ms. */
  readonly relistMs: number;
  readonly onListed: (resources: readonly { readonly uri: string }[]) => void;
  /** The owner calls {@link ResourceListing.retry} when it is time. */
  readonly onFailed: () => void;
}

/** When the resources of a server are listed: one listing at a time, and a burst of changes costs little. */
export class ResourceListing {
  private phase: 'idle' | 'running' | 'again' | 'failed' = 'idle';
  private session: ListingSession | null = null;
  private timer: NodeJS.Timeout | undefined;
  private endedAt = Number.NEGATIVE_INFINITY;
  private costMs = 0;

  constructor(private readonly options: ResourceListingOptions) {}

  get failed(): boolean {
    return this.phase === 'failed';
  }

  /** A listing is under way. */
  get running(): boolean {
    return this.phase === 'running' || this.phase === 'again';
  }

  attach(session: ListingSession): void {
    this.detach();
    this.session = session;
  }

  detach(): void {
    clearTimeout(this.timer);
    this.session = null;
    this.phase = 'idle';
    this.endedAt = Number.NEGATIVE_INFINITY;
    this.costMs = 0;
  }

  /** Lists soon: at once, or when twice the time the last listing took has passed since it ended. */
  request(): void {
    if (this.session === null) return;
    if (this.phase === 'running') this.phase = 'again';
    if (this.phase !== 'idle') return;
    clearTimeout(this.timer);
    const wait = this.endedAt + 2 * this.costMs - this.options.clock.now();
    if (wait <= 0) this.begin();
    else this.timer = setTimeout(() => this.begin(), wait);
  }

  /** Lists again after a failure. */
  retry(): void {
    if (this.phase === 'failed') this.begin();
  }

  private begin(): void {
    const { session } = this;
    if (session === null) return;
    this.phase = 'running';
    void this.list(session);
  }

  private async list(session: ListingSession): Promise<void> {
    const { clock, log, server, onListed, onFailed } = this.options;
    const started = clock.now();
    try {
      const resources = await session.list();
      if (this.session !== session) return;
      const again = this.runAgain();
      this.phase = 'idle';
      this.endedAt = clock.now();
      this.costMs = this.endedAt - started;
      onListed(resources);
      if (again) this.request();
      else if (!session.announcesLists && this.session === session) {
        this.timer = setTimeout(() => this.begin(), this.options.relistMs);
      }
    } catch (error) {
      if (this.session !== session) return;
      this.phase = 'failed';
      log.warn('subscribe', { server, msg: `resources could not be listed: ${errorMessage(error)}` });
      onFailed();
    }
  }

  private runAgain(): boolean {
    return this.phase === 'again';
  }
}
