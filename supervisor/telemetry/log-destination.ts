import { closeSync, constants, fstatSync, openSync } from 'node:fs';
import { Socket } from 'node:net';
import type { Writable } from 'node:stream';
import { pino } from 'pino';

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

/** What may wait for the reader, UTF-16 units (pipes) or bytes (files). */
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

/** Files and terminals. On a full disk the waiting lines are kept and tried again with the next one. */
function fileDestination(fd: number, maxWaiting: number): LogDestination {
  const boom = pino.destination({ dest: fd, sync: false, maxLength: maxWaiting });
  let waiting = 0;
  let dropped = false;
  boom.on('error', () => {});
  boom.on('write', (bytes) => {
    waiting -= bytes;
  });
  boom.on('drop', () => {
    dropped = true;
  });
  return {
    write(line) {
      dropped = false;
      boom.write(line);
      if (dropped) return false;
      waiting += Buffer.byteLength(line);
      return true;
    },
    flush: (budgetMs) => within(budgetMs, (done) => (waiting <= 0 ? done() : boom.once('drain', done))),
  };
}

/** Runs `wait` until it calls back, but no longer than `budgetMs`. */
function within(budgetMs: number, wait: (done: () => void) => void): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, Math.max(0, budgetMs));
    wait(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}
