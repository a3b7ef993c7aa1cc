import { type EventLine, LOG_LEVELS, type LogLevel } from '../../protocol/event-line.ts';
import { VERSIONS } from '../../protocol/versions.ts';

/** A line in the ring: numbered from 1, without gaps, for the life of the process. */
export type NumberedLine = EventLine & { readonly seq: number };

export interface EventsQuery {
  /** Only lines numbered higher. Default 0: from the oldest kept. */
  readonly after?: number;
  /** Only this level and more severe ones. */
  readonly level?: LogLevel;
  /** Only events whose name begins with one of these. */
  readonly prefixes?: readonly string[];
}

/** `agent://events` (contract, section 5). */
export interface EventsPage {
  readonly events_schema: string;
  /** Of the oldest line kept; 0 while there is none. */
  readonly oldest_seq: number;
  readonly newest_seq: number;
  /** Lines after the reader's cursor that were overwritten before it came. */
  readonly dropped: number;
  readonly events: readonly NumberedLine[];
  /** The page ended early: read on after the last line of it. Otherwise read on after `newest_seq`. */
  readonly more?: true;
}

/** A page ends here, UTF-16 units; the reader goes on from the last `seq` it got. */
const MAX_PAGE_CHARS = 4 * 1024 * 1024;

/**
 * The latest log lines of this process. Lossy by design: the writer never waits, a slow reader sees
 * `dropped` grow.
 */
export class EventRing {
  private readonly slots: NumberedLine[] = [];
  private newest = 0;
  private readonly listeners = new Set<() => void>();

  /** @param capacity lines kept, at least 1 */
  constructor(private readonly capacity: number) {}

  append(line: EventLine): void {
    this.newest += 1;
    this.slots[(this.newest - 1) % this.capacity] = { ...line, seq: this.newest };
    for (const listener of this.listeners) listener();
  }

  /** Calls `listener` after each line until the returned function is called. It must not throw or log. */
  onAppend(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  read(query: EventsQuery = {}): EventsPage {
    const after = Math.max(0, query.after ?? 0);
    const oldest = this.newest === 0 ? 0 : Math.max(1, this.newest - this.capacity + 1);
    const least = query.level === undefined ? 0 : LOG_LEVELS.indexOf(query.level);
    const events: NumberedLine[] = [];
    let room = MAX_PAGE_CHARS;
    let more = false;
    for (let seq = Math.max(oldest, after + 1); seq <= this.newest && seq > 0; seq++) {
      const line = this.slots[(seq - 1) % this.capacity];
      if (line === undefined || LOG_LEVELS.indexOf(line.level) < least) continue;
      if (query.prefixes !== undefined && !query.prefixes.some((prefix) => line.event.startsWith(prefix)))
        continue;
      room -= JSON.stringify(line).length;
      if (room < 0 && events.length > 0) {
        more = true;
        break;
      }
      events.push(line);
    }
    return {
      events_schema: VERSIONS.events_schema,
      oldest_seq: oldest,
      newest_seq: this.newest,
      dropped: Math.max(0, oldest - after - 1),
      events,
      ...(more ? { more } : {}),
    };
  }
}

/** Reads `?after=<seq>&level=<min>&event=<prefix,prefix>`. What does not make sense is no filter. */
export function eventsQuery(params: URLSearchParams): EventsQuery {
  const after = params.get('after') ?? '';
  const level = LOG_LEVELS.find((known) => known === params.get('level'));
  const prefixes = (params.get('event') ?? '').split(',').filter((prefix) => prefix !== '');
  return {
    ...(/^\d{1,15}$/.test(after) ? { after: Number(after) } : {}),
    ...(level === undefined ? {} : { level }),
    ...(prefixes.length === 0 ? {} : { prefixes }),
  };
}
