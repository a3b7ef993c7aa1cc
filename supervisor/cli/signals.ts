/** Signals a process of ours may be told to end by, or to reload. */
export type HandledSignal = 'SIGTERM' | 'SIGINT' | 'SIGHUP';
export type SignalListener = (signal: HandledSignal) => void;

/** How long a signal waits for somebody to listen, ms. */
const HOLD_MS = 2_000;

/**
 * Passes signals to whoever listens. A signal that comes while the process is still starting is held
 * and delivered to the first listener, so that a drain is clean from the first moment on. When nobody
 * listens in time, or a second one asks for the end, the default action is taken.
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
      this.hold(signal);
    } else if (signal === 'SIGHUP') {
      // What it asks to be read again has not been read yet, or never will be.
    } else if (this.held.signal === 'SIGHUP') {
      clearTimeout(this.held.timer);
      this.hold(signal);
    } else {
      this.takeDefault(signal);
    }
  }

  /** Whether the process was told to end before anybody listened. */
  get toldToEnd(): boolean {
    return this.held !== null && this.held.signal !== 'SIGHUP';
  }

  private hold(signal: HandledSignal): void {
    const timer = setTimeout(() => this.takeDefault(signal), this.holdMs);
    // It must not keep a finished process alive.
    timer.unref();
    this.held = { signal, timer };
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
