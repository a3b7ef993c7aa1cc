import { PassThrough } from 'node:stream';
import type { Host } from '../../supervisor/cli/host.ts';

/** A host whose output is kept and whose signals the test sends. */
export interface FakeHost extends Host {
  readonly out: () => string;
  readonly err: () => string;
  signal(name: 'SIGTERM' | 'SIGINT' | 'SIGHUP'): void;
  /** Listeners of signals that are still installed. */
  readonly listening: () => number;
}

export function fakeHost(options: { cwd?: string; env?: NodeJS.ProcessEnv } = {}): FakeHost {
  const listeners = new Set<(signal: 'SIGTERM' | 'SIGINT' | 'SIGHUP') => void>();
  const kept = (): { stream: NodeJS.WriteStream; text: () => string } => {
    let text = '';
    const stream = new PassThrough();
    stream.on('data', (chunk) => {
      text += String(chunk);
    });
    return { stream: stream as unknown as NodeJS.WriteStream, text: () => text };
  };
  const [out, err] = [kept(), kept()];
  return {
    env: options.env ?? {},
    cwd: options.cwd ?? process.cwd(),
    stdout: out.stream,
    stderr: err.stream,
    out: out.text,
    err: err.text,
    onSignal: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    toldToEnd: async () => false,
    raise: () => {
      throw new Error('raise() is not expected here');
    },
    signal: (name) => {
      for (const listener of listeners) listener(name);
    },
    listening: () => listeners.size,
  };
}
