import type { Random, Scheduler } from './scheduler.ts';

/** A bad network, in virtual time. */
export interface Wire {
  readonly random: Random;
  readonly scheduler: Scheduler;
  /** While true, calls may be slow, lost or doubled. */
  readonly bad: () => boolean;
  readonly ttlMs: number;
  /** Lets the caller take an answer, now or when it can. */
  arrive(what: () => void): void;
}

/** A call that may be slow, lost on either way, or arrive twice; one answer, within its deadline. */
export function transport<T>(
  wire: Wire,
  deadlineMs: number,
  perform: () => T,
  seen: (reply: T) => void,
): Promise<T> {
  const { random, scheduler, bad, ttlMs } = wire;
  const reply = new Reply<T>();
  let answered = false;
  const answer = (value: T): void =>
    wire.arrive(() => {
      if (answered) return;
      answered = true;
      seen(value);
      reply.resolve(value);
    });
  const delay = (): number =>
    bad() && random.chance(0.1) ? random.between(0, 3 * ttlMs) : random.between(0, 20);
  const deliver = (): void => {
    scheduler.schedule(scheduler.now + delay(), () => {
      const result = perform();
      if (bad() && random.chance(0.08)) return;
      scheduler.schedule(scheduler.now + delay(), () => answer(result));
    });
  };
  if (!bad() || !random.chance(0.08)) deliver();
  if (bad() && random.chance(0.05)) deliver();
  scheduler.schedule(scheduler.now + deadlineMs, () => answer({ kind: 'failed', error: 'timeout' } as T));
  return reply as unknown as Promise<T>;
}

/** A promise that calls its one listener in the same tick, so that virtual time needs no real turns. */
class Reply<T> {
  private listener: ((value: T) => void) | null = null;

  // biome-ignore lint/suspicious/noThenProperty: it stands in for a promise
  then(listener: (value: T) => void): void {
    this.listener = listener;
  }

  resolve(value: T): void {
    this.listener?.(value);
  }
}
