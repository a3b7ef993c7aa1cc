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
 *
 * @param onBroken called when nobody reads frames any more
 */
export function guardStdout(
  stdout: NodeJS.WriteStream,
  stderr: NodeJS.WriteStream,
  onBroken: (error: Error) => void,
): FrameOutput {
  const write = stdout.write.bind(stdout);
  stdout.write = stderr.write.bind(stderr) as typeof stdout.write;
  stdout.on('error', onBroken);
  // Free text may be lost.
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
