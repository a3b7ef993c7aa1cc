/** Where frames go: the only way to the real stdout. */
export interface FrameOutput {
  /** Queues one line. `done` runs once it has left this process, or with the error that stopped it. */
  write(line: string | Buffer, done?: (error?: Error | null) => void): void;
  /** Bytes queued and not yet taken by the pipe. */
  readonly queuedBytes: number;
}

/**
 * Takes stdout for frames alone: whatever a library prints there from now on goes to stderr, so a
 * stray `console.log` cannot tear the protocol (invariant 7).
 */
export function guardStdout(stdout: NodeJS.WriteStream, stderr: NodeJS.WriteStream): FrameOutput {
  const write = stdout.write.bind(stdout);
  stdout.write = stderr.write.bind(stderr) as typeof stdout.write;
  // A supervisor that is gone breaks the pipe; stdin tells us, and the loop ends there.
  stdout.on('error', () => undefined);
  stderr.on('error', () => undefined);
  return {
    write: (line, done) => {
      write(line, done);
    },
    get queuedBytes() {
      return stdout.writableLength;
    },
  };
}
