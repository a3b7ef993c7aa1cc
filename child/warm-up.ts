import { PassThrough } from 'node:stream';
import type { RunStart } from '../protocol/frames.ts';
import { encodeFrame } from '../protocol/ndjson.ts';
import { Connection } from './connection.ts';
import { Runner } from './runner.ts';

/** How long a new child stays at the disposal of a run that is already there, ms. */
export const WARM_UP_AFTER_MS = 20;
/** The first run compiles what it meets and the second finds out what it meets often. */
const RUNS = 2;

/**
 * Takes runs of the scripted model from a frame to a result, all of it into nothing, so that what
 * V8 compiles and zod builds on first use is there when a run arrives: half the time between a
 * notification and the child's loop went into that. Has no effects outside this process's memory.
 */
export async function warmUp(): Promise<void> {
  for (let run = 0; run < RUNS; run++) await walkThrough(RUN);
}

function walkThrough(run: RunStart): Promise<void> {
  return new Promise((resolve) => {
    const input = new PassThrough();
    const output = { queuedBytes: 0, write: (_line: unknown, done?: () => void) => done?.() };
    const runner = new Runner({
      notify: (message, done) => connection.notify(message, done),
      notifyLossy: (message) => connection.notifyLossy(message),
      request: (message) => connection.request(message),
      effects: {
        writeStdout: () => Promise.resolve(),
        writeStderr: () => Promise.resolve(),
        exit: () => undefined as never,
      },
      model: { hold: () => undefined, release: () => Promise.resolve(), take: () => Promise.resolve(null) },
      now: () => performance.now(),
      finished: () => input.end(),
    });
    const connection = new Connection(input, output, {
      notification: (message) => runner.take(message),
      response: (message) => runner.answer(message),
      invalid: () => input.end(),
      closed: () => resolve(),
    });
    connection.open(process.pid);
    input.write(encodeFrame({ id: 1, method: 'ping' }));
    input.write(encodeFrame({ method: 'run.start', params: run }));
  });
}

const RUN: RunStart = {
  run_id: 'warm-up',
  agent_id: 'warm-up',
  agent_path: '0',
  kind: 'run',
  instruction: 'warm-up',
  event: { uri: 'warm-up:', server: 'warm-up', sequence: 1 },
  tools: [{ name: 'warm-up', server: 'warm-up', tool: 'warm-up', description: '', input_schema: {} }],
  self_tools: [],
  limits: { max_steps: 1, max_tokens: 1, deadline_ms: 5_000, tool_timeout_ms: 5_000 },
  model: { endpoints: [{ url: 'script:final' }], timeout_ms: 5_000, max_attempts: 1 },
  telemetry: { instance: 'warm-up', traceparent: '', log_level: 'info', log_content: false },
};
