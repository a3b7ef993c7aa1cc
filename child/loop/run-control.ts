import { setMaxListeners } from 'node:events';

/**
 * What the supervisor wants of a run. `stop` and `wind_down` are one-way; the first stop wins.
 * The loop asks at its turn boundaries; calls in flight hear of a stop through `signal`.
 */

export type StopRequest =
  | { readonly kind: 'cancelled'; readonly reason: string }
  | { readonly kind: 'deadline' };

export type Wanted =
  | { readonly kind: 'run' }
  | { readonly kind: 'pause' }
  /** Finish the turn at hand, then end as cancelled. */
  | { readonly kind: 'wind_down' }
  | { readonly kind: 'stop'; readonly request: StopRequest };

export type ControlEvent =
  | { readonly kind: 'pause' }
  | { readonly kind: 'resume' }
  | { readonly kind: 'wind_down' }
  | { readonly kind: 'stop'; readonly request: StopRequest };

/** The next wanted state; total over state × event. */
export function nextWanted(wanted: Wanted, event: ControlEvent): Wanted {
  if (wanted.kind === 'stop') return wanted;
  if (event.kind === 'stop') return { kind: 'stop', request: event.request };
  if (wanted.kind === 'wind_down' || event.kind === 'wind_down') return { kind: 'wind_down' };
  return event.kind === 'pause' ? { kind: 'pause' } : { kind: 'run' };
}

/** How the loop may go on after a turn boundary. */
export type Passage = Exclude<Wanted, { kind: 'pause' }>;

export class RunControl {
  private waiting: (() => void)[] = [];
  private beforeStop: Wanted = { kind: 'run' };
  private readonly abort = new AbortController();

  constructor(private wanted: Wanted = { kind: 'run' }) {
    // Every call in flight listens; their number is bounded elsewhere.
    setMaxListeners(0, this.abort.signal);
  }

  /** Aborted by a stop; its reason is the {@link StopRequest}. */
  get signal(): AbortSignal {
    return this.abort.signal;
  }

  get state(): Wanted {
    return this.wanted;
  }

  apply(event: ControlEvent): void {
    const before = this.wanted;
    this.wanted = nextWanted(before, event);
    if (this.wanted.kind === 'stop' && before.kind !== 'stop') {
      this.beforeStop = before;
      this.abort.abort(this.wanted.request);
    }
    if (this.wanted.kind === 'pause') return;
    for (const wake of this.waiting.splice(0)) wake();
  }

  /** After a deadline the next task of a session starts anew, paused if this one was. */
  forNextTask(): RunControl {
    const deadline = this.wanted.kind === 'stop' && this.wanted.request.kind === 'deadline';
    return deadline ? new RunControl(this.beforeStop) : this;
  }

  /** A turn boundary: waits while the run is paused. `observe` is told when waiting begins and ends. */
  async boundary(observe: (kind: 'paused' | 'resumed') => void): Promise<Passage> {
    if (this.wanted.kind === 'pause') {
      observe('paused');
      while (this.wanted.kind === 'pause') {
        await new Promise<void>((resolve) => {
          this.waiting.push(resolve);
        });
      }
      observe('resumed');
    }
    return this.wanted as Passage;
  }
}
