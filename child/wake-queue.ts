import type { SupervisorNotification } from '../protocol/frames.ts';
import type { Wanted } from './loop/run-control.ts';

export type Wake = Extract<SupervisorNotification, { method: 'session.wake' }>['params'];

/** Wakes that may wait for the turn at hand; a supervisor sends one at a time. */
const MAX_WAITING_WAKES = 64;

/** The wakes of a session, in the order they came. */
export class WakeQueue {
  private readonly waiting: Wake[] = [];
  private onStir: (() => void) | null = null;

  /** False when too many are waiting already: the wake is not taken. */
  add(wake: Wake): boolean {
    if (this.waiting.length >= MAX_WAITING_WAKES) return false;
    this.waiting.push(wake);
    this.stir();
    return true;
  }

  /** Lets a session that waits for a wake look again at what is wanted of it. */
  stir(): void {
    this.onStir?.();
    this.onStir = null;
  }

  /** The next wake, or null when the session is to end. */
  async next(wanted: () => Wanted): Promise<Wake | null> {
    for (;;) {
      const { kind } = wanted();
      if (kind === 'stop' || kind === 'wind_down') return null;
      const wake = this.waiting.shift();
      if (wake !== undefined) return wake;
      await new Promise<void>((resolve) => {
        this.onStir = resolve;
      });
    }
  }
}
