import { existsSync } from 'node:fs';
import { parseFrameFromChild } from '../../../protocol/frames.ts';
import { FrameDecoder } from '../../../protocol/ndjson.ts';
import { childProgram } from '../../children/child-command.ts';
import { agentEnvironment } from '../../children/environment.ts';
import { LineSplitter } from '../../children/line-splitter.ts';
import { type ProcessEnd, spawnSupervised } from '../../children/supervised-process.ts';
import { type Finding, fail, ok } from './finding.ts';

/** Whether a child of this build starts, says that it is ready, and ends. */

/** A first start reads everything from disk, ms (contract, section 12). */
const READY_MS = 10_000;
const MOST_LINE_BYTES = 4_096;

/**
 * Starts one child without a run and ends it again.
 *
 * @param program the child program
 */
export async function checkChild(
  env: NodeJS.ProcessEnv,
  program = childProgram(),
  readyMs = READY_MS,
): Promise<Finding> {
  const check = 'child';
  if (!existsSync(program)) {
    return fail(check, `there is no ${program}`, 'Build it (npm run build), or install the package again.');
  }
  const startedAt = performance.now();
  const child = spawnSupervised([process.execPath, program], { env: agentEnvironment(env) });
  let said = '';
  const lines = new LineSplitter(MOST_LINE_BYTES, (line) => {
    if (said === '') said = line;
  });
  child.stderr.on('data', (chunk: Buffer) => lines.write(chunk));
  child.stderr.once('end', () => lines.end());
  const first = await firstWord(child, readyMs);
  const readyAfterMs = Math.round(performance.now() - startedAt);
  child.stop('doctor');
  const [end] = await Promise.all([child.exited, child.drained]);
  if (first === 'ready') {
    if (end.groupEmpty) return ok(check, `starts, is ready after ${readyAfterMs} ms and ends`);
    return fail(
      check,
      'starts, but does not end when it is killed',
      'Look at it with ps; restart the machine.',
    );
  }
  return fail(check, `${whyNot(first, end, readyMs)}${said === '' ? '' : `: ${said}`}`, remedyFor(program));
}

type FirstWord = 'ready' | 'other' | 'gone' | 'silence';

/** What comes first: its ready frame, something else, its end, or nothing in time. */
function firstWord(child: ReturnType<typeof spawnSupervised>, readyMs: number): Promise<FirstWord> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve('silence'), readyMs);
    const settle = (word: FirstWord): void => {
      clearTimeout(timer);
      resolve(word);
    };
    const decoder = new FrameDecoder({
      frame: (value) => settle(isReady(value) ? 'ready' : 'other'),
      garbage: () => undefined,
      overflow: () => settle('other'),
    });
    child.stdout.on('data', (chunk: Buffer) => decoder.write(chunk));
    void child.exited.then(() => settle('gone'));
  });
}

function isReady(value: Record<string, unknown>): boolean {
  try {
    const frame = parseFrameFromChild(value);
    return frame.type === 'notification' && frame.body.method === 'ready';
  } catch {
    return false;
  }
}

function whyNot(first: FirstWord, { code, signal, spawnError }: ProcessEnd, readyMs: number): string {
  if (spawnError !== null) return spawnError.message.replace(/\.$/, '');
  if (first === 'silence') return `starts, but is not ready within ${readyMs / 1_000} s`;
  if (first === 'other') return 'starts, but speaks another protocol';
  return `ends before it is ready, with ${signal ?? `exit code ${code}`}`;
}

function remedyFor(program: string): string {
  return `See what \`node ${program} </dev/null\` says; check free memory, ulimit -u, and that this user may run node.`;
}
