import { EVENT_NAMES, type EventName, type LogLevel } from '../../protocol/event-line.ts';
import type { Clock } from '../reactor/clock.ts';
import type { Log } from '../telemetry/log.ts';
import { type Bucket, type BucketRate, fullBucket, takeToken } from './token-bucket.ts';

/** What one child may have in the log. */
export interface RelayRates {
  /** Log frames, re-emitted. */
  readonly frames: BucketRate;
  /** Lines of free text from its stderr, and complaints about its stdout. */
  readonly text: BucketRate;
}
const FRAMES: BucketRate = { burst: 1_000, perSecond: 200 };
/** Free text is shown as a sample. */
export const SAMPLED_TEXT: RelayRates = { frames: FRAMES, text: { burst: 100, perSecond: 20 } };
/** Free text is shown in full, as far as anybody could read it (`--aggregate-logs`). */
export const AGGREGATED_TEXT: RelayRates = { frames: FRAMES, text: FRAMES };
/** Characters of one line of free text that reach the log. */
const TEXT_CHARACTERS = 4_096;
/** Lines of stderr kept for the report of a child that ends badly. */
const TAIL_LINES = 20;

export function relayRates({ aggregateLogs }: { readonly aggregateLogs: boolean }): RelayRates {
  return aggregateLogs ? AGGREGATED_TEXT : SAMPLED_TEXT;
}

const KNOWN: ReadonlySet<string> = new Set(EVENT_NAMES);

/** Carries what a child says into the log under the child's identity, at a bounded rate. */
export class LogRelay {
  private log: Log;
  private frames: Bucket;
  private text: Bucket;
  private dropped = 0;
  private readonly tail: string[] = [];

  constructor(
    log: Log,
    private readonly pid: number,
    private readonly clock: Clock,
    private readonly rates: RelayRates = SAMPLED_TEXT,
  ) {
    this.log = log.as({ comp: 'agent', pid });
    this.frames = fullBucket(rates.frames, clock.now());
    this.text = fullBucket(rates.text, clock.now());
  }

  /** From now on lines belong to that run. */
  adopt(log: Log): void {
    this.log = log.as({ comp: 'agent', pid: this.pid });
  }

  /** The last non-empty line of stderr; null when there was none. */
  get lastStderr(): string | null {
    return this.tail.findLast((line) => line.trim() !== '')?.slice(0, 500) ?? null;
  }

  frame(level: LogLevel, event: string, fields: Readonly<Record<string, unknown>>): void {
    if (!isEventName(event)) {
      this.garbage(event, 'a log frame with an unknown event name');
      return;
    }
    const { taken, bucket } = takeToken(this.frames, this.rates.frames, this.clock.now());
    this.frames = bucket;
    if (!taken) {
      this.dropped += 1;
      return;
    }
    const log = event.startsWith('intel.') ? this.log.as({ comp: 'intel' }) : this.log;
    log.write(level, event, fields);
  }

  stderr(line: string): void {
    this.tail.push(line.slice(0, TEXT_CHARACTERS));
    if (this.tail.length > TAIL_LINES) this.tail.shift();
    if (line.trim() === '' || !this.mayWriteText()) return;
    const text = line.length > TEXT_CHARACTERS ? `${line.slice(0, TEXT_CHARACTERS)}…` : line;
    this.log.info('loop.error', { msg: text, stream: 'stderr' });
  }

  garbage(sample: string, reason: string): void {
    if (!this.mayWriteText()) return;
    this.log.warn('loop.error', { msg: `skipped a line on stdout: ${reason}`, sample, stream: 'stdout' });
  }

  /** Says once a tick how much was dropped. */
  tick(): void {
    if (this.dropped === 0) return;
    this.log.warn('limit.exceeded', {
      limit: 'other',
      msg: 'log lines of this child were dropped',
      dropped: this.dropped,
    });
    this.dropped = 0;
  }

  private mayWriteText(): boolean {
    const { taken, bucket } = takeToken(this.text, this.rates.text, this.clock.now());
    this.text = bucket;
    if (!taken) this.dropped += 1;
    return taken;
  }
}

function isEventName(name: string): name is EventName {
  return KNOWN.has(name);
}
