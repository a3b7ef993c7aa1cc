/** What is logged by one that was told to end so early that it had nothing to drain. */
export const TOLD_TO_END = 'told to end before anything was started';

/**
 * What a verb may touch of the process it runs in. Only main.ts holds the real one, so that no
 * library installs a signal handler or ends the process.
 */
export interface Host {
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
  /** Calls `listener` for every SIGTERM, SIGINT and SIGHUP until the returned function is called. */
  onSignal(listener: (signal: 'SIGTERM' | 'SIGINT' | 'SIGHUP') => void): () => void;
  /**
   * Whether SIGTERM or SIGINT has come and nobody has taken it yet. Asked before anything is started,
   * so that what was stopped that early ends at once, with nothing to undo.
   */
  toldToEnd(): Promise<boolean>;
  /**
   * Ends the process as if `signal` had killed it, after the caller has cleaned up: the default
   * handler is restored and the signal raised; as PID 1, where that is impossible, exit(128 + n).
   */
  raise(signal: 'SIGTERM'): void;
}

/** The action of a verb: resolves to the exit code of the process. */
export type VerbAction = (host: Host) => Promise<number>;
