import { closeSync, constants, fstatSync, openSync, write } from 'node:fs';
import { Socket } from 'node:net';
import type { Writable } from 'node:stream';

/**
 * Where log lines go. Writing never blocks the event loop, never throws and never holds up the end
 * of the process: a reader that is slow costs lines, which are counted (invariant 10).
 *
 * A plain `fs.write` to a full pipe would not do: it blocks a thread of the pool, and `process.exit`
 * waits for that thread. So pipes are opened again through /proc with O_NONBLOCK, which also leaves
 * the flags of whoever shares our stderr alone, and are written through the event loop.
 */
export interface LogDestination {
  /** False when the line was dropped. */
  write(line: string): boolean;
  /** Resolves when everything accepted is written, at the latest after `budgetMs`. */
  flush(budgetMs: number): Promise<void>;
}

/** What may wait for the reader, UTF-16 units. */
export const MAX_WAITING = 4 * 1024 * 1024;

/** Opens a descriptor number or wraps a stream. */
export function openDestination(target: number | Writable, maxWaiting = MAX_WAITING): LogDestination {
  if (typeof target !== 'number') return streamDestination(target, maxWaiting);
  try {
    const kind = fstatSync(target);
    if (kind.isFile()) return fileDestination(target, maxWaiting);
    if (kind.isSocket()) return socketDestination(target, maxWaiting);
    const own = reopened(target);
    if (kind.isFIFO())
      return own === null ? socketDestination(target, maxWaiting) : socketOf(own, maxWaiting);
    return fileDestination(own ?? target, maxWaiting);
  } catch {
    return closedDestination;
  }
}

const closedDestination: LogDestination = { write: () => false, flush: () => Promise.resolve() };

/** An open file description of our own with O_NONBLOCK set, or null where the platform has none. */
function reopened(fd: number): number | null {
  try {
    return openSync(`/proc/self/fd/${fd}`, constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  } catch {
    return null;
  }
}

/** Node keeps one handle per descriptor, so the standard stream is used where it is ours. */
function socketDestination(fd: number, maxWaiting: number): LogDestination {
  return fd === 2 ? streamDestination(process.stderr, maxWaiting) : socketOf(fd, maxWaiting);
}

function socketOf(fd: number, maxWaiting: number): LogDestination {
  try {
    const socket = new Socket({ fd, readable: false, writable: true });
    socket.unref();
    return streamDestination(socket, maxWaiting);
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

function streamDestination(stream: Writable, maxWaiting: number): LogDestination {
  // EPIPE and its kin arrive here: the stream is destroyed and every later line counts as dropped.
  stream.on('error', () => {});
  return {
    write(line) {
      if (stream.destroyed || !stream.writable) return false;
      if (stream.writableLength + line.length > maxWaiting) return false;
      stream.write(line);
      return true;
    },
    flush: (budgetMs) =>
      within(budgetMs, (done) => (stream.writableLength === 0 ? done() : stream.write('', () => done()))),
  };
}

/** How long to leave a terminal that takes nothing, or a full disk, alone, ms. */
const RETRY_MS = 50;
const BATCH_LINES = 256;

/**
 * Files and terminals: one asynchronous write at a time. On a full disk what waits is kept and tried
 * again, so logging resumes by itself. (pino's own destination flushes synchronously at exit, without
 * end on such a disk.)
 */
function fileDestination(fd: number, maxWaiting: number): LogDestination {
  let queue: string[] = [];
  let waiting = 0;
  let busy = false;
  let idle: (() => void)[] = [];

  const pump = (): void => {
    if (busy) return;
    if (queue.length === 0) {
      for (const done of idle) done();
      idle = [];
      return;
    }
    busy = true;
    const text = queue.slice(0, BATCH_LINES).join('');
    queue = queue.slice(BATCH_LINES);
    attempt(Buffer.from(text), text.length);
  };
  const attempt = (rest: Buffer, size: number): void => {
    write(fd, rest, (error, bytes) => {
      const left = error === null ? rest.subarray(bytes) : rest;
      if (error !== null) {
        setTimeout(() => attempt(left, size), RETRY_MS).unref();
      } else if (left.length > 0) {
        attempt(left, size);
      } else {
        busy = false;
        waiting -= size;
        pump();
      }
    });
  };
  return {
    write(line) {
      if (waiting + line.length > maxWaiting) return false;
      queue.push(line);
      waiting += line.length;
      pump();
      return true;
    },
    flush: (budgetMs) => within(budgetMs, (done) => (busy ? idle.push(done) : done())),
  };
}

/** Runs `wait` until it calls back, but no longer than `budgetMs`. */
function within(budgetMs: number, wait: (done: () => void) => unknown): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, Math.max(0, budgetMs));
    wait(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}
