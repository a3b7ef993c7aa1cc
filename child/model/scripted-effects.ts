import type { ChildProcess } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { encodeFrame } from '../../protocol/ndjson.ts';
import type { ForkKind } from '../../protocol/playbook.ts';

/** What a playbook may do to the process it runs in, so that supervision can be tried on real faults. */
export interface ScriptedEffects {
  /** Ends the process, by code or by signal. Never resolves when it works. */
  crash(how: number | string): Promise<void>;
  /** Blocks the event loop. `null`: for ever. */
  spin(ms: number | null): void;
  /** Writes bytes past the frame protocol; `line` is the length of a line, 0 for none. */
  floodStdout(bytes: number, line: number): Promise<void>;
  floodStderr(bytes: number, line: number): Promise<void>;
  /** Sends log frames as fast as the pipe takes them. */
  floodLog(lines: number): Promise<void>;
  writeRaw(bytes: Buffer): Promise<void>;
  /** Starts a process of its own that outlives the run, unless it is killed. */
  fork(kinds: readonly ForkKind[], seconds: number): Promise<void>;
}

/** What the effects act through. */
export interface EffectPorts {
  /** Writes to the real stdout and resolves when the pipe has taken it. */
  writeStdout(bytes: Buffer | string): Promise<void>;
  writeStderr(bytes: Buffer): Promise<void>;
  exit(code: number): void;
}

const CHUNK_BYTES = 64 * 1024;

export function scriptedEffects(ports: EffectPorts): ScriptedEffects {
  return {
    crash: async (how) => {
      if (typeof how === 'number') ports.exit(how);
      else process.kill(process.pid, how);
      // SIGTERM and SIGSTOP let the process go on for a moment, or for ever.
      await delay(1000);
    },
    spin: (ms) => {
      const end = ms === null ? Number.POSITIVE_INFINITY : performance.now() + ms;
      while (performance.now() < end);
    },
    floodStdout: (bytes, line) => flood(bytes, line, ports.writeStdout),
    floodStderr: (bytes, line) => flood(bytes, line, ports.writeStderr),
    floodLog: async (lines) => {
      for (let sent = 0; sent < lines; ) {
        let batch = '';
        for (; sent < lines && batch.length < CHUNK_BYTES; sent++) {
          const params = { level: 'info', event: 'loop.step', fields: { flood: sent } } as const;
          batch += encodeFrame({ method: 'log', params });
        }
        await ports.writeStdout(batch);
      }
    },
    writeRaw: (bytes) => ports.writeStdout(bytes),
    fork: async (kinds, seconds) => {
      const started = await startGrandchild(kinds, seconds);
      await new Promise<void>((resolve, reject) => {
        started.once('spawn', resolve);
        started.once('error', reject);
      });
      started.unref();
    },
  };
}

async function flood(bytes: number, line: number, write: (piece: Buffer) => Promise<void>): Promise<void> {
  const unit = line === 0 ? 'x'.repeat(CHUNK_BYTES) : `${'x'.repeat(Math.max(0, line - 1))}\n`;
  const chunk = Buffer.from(unit.repeat(Math.max(1, Math.ceil(CHUNK_BYTES / unit.length))));
  for (let left = bytes; left > 0; left -= chunk.length) {
    await write(left >= chunk.length ? chunk : chunk.subarray(0, left));
  }
}

async function startGrandchild(kinds: readonly ForkKind[], seconds: number): Promise<ChildProcess> {
  const { spawn } = await import('node:child_process');
  const sleep = ['sleep', String(seconds)] as const;
  // An ignored signal stays ignored across exec.
  const [file, ...args] = kinds.includes('ignores_sigterm')
    ? ['/bin/sh', '-c', 'trap "" TERM; exec "$@"', 'sh', ...sleep]
    : sleep;
  return spawn(file, args, {
    stdio: ['ignore', kinds.includes('holds_stdout') ? 'inherit' : 'ignore', 'ignore'],
    detached: kinds.includes('setsid'),
  });
}
