/** Signals a process of ours may be told to end by, or to reload. */
export type HandledSignal = 'SIGTERM' | 'SIGINT' | 'SIGHUP';
export type SignalListener = (signal: HandledSignal) => void;

/** How long a signal waits for somebody to listen, ms. */
const HOLD_MS = 2_000;

/**
 * Passes signals to whoever listens. A signal that comes while the process is still starting is held
 * and delivered to the first listener, so that a drain is clean from the first moment on. When nobody
 * listens in time, or a second one comes, the default action is taken.
 */
export class SignalDesk {
  private readonly listeners = new Set<SignalListener>();
  private held: { readonly signal: HandledSignal; readonly timer: NodeJS.Timeout } | null = null;

  constructor(
    private readonly takeDefault: SignalListener,
    private readonly holdMs: number = HOLD_MS,
  ) {}

  arrived(signal: HandledSignal): void {
    if (this.listeners.size > 0) {
      for (const listener of [...this.listeners]) listener(signal);
    } else if (this.held === null) {
      this.held = { signal, timer: setTimeout(() => this.takeDefault(signal), this.holdMs) };
      // It must not keep a finished process alive.
      this.held.timer.unref();
    } else {
      this.takeDefault(signal);
    }
  }

  /** Calls `listener` for every signal from now on, a held one first, until the returned function is called. */
  subscribe(listener: SignalListener): () => void {
    this.listeners.add(listener);
    if (this.held !== null) {
      const { signal, timer } = this.held;
      this.held = null;
      clearTimeout(timer);
      queueMicrotask(() => {
        if (this.listeners.has(listener)) listener(signal);
      });
    }
    return () => this.listeners.delete(listener);
  }
}
