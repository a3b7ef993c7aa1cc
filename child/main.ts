import { errorMessage } from '../protocol/errors.ts';
import { Connection } from './connection.ts';
import { WarmModel } from './model/warm-model.ts';
import { Runner } from './runner.ts';
import { type ExitPorts, LAST_WORDS_MS, leaveWithGroup } from './shutdown.ts';
import { guardStdout } from './stdout-guard.ts';
import { WARM_UP_AFTER_MS, warmUp } from './warm-up.ts';

const ports: ExitPorts = {
  pid: process.pid,
  exit: (code) => process.exit(code),
  kill: (pid, signal) => process.kill(pid, signal),
};
const { stderr } = process;
const output = guardStdout(process.stdout, stderr, leave);

const runner = new Runner({
  notify: (message, done) => connection.notify(message, done),
  notifyLossy: (message) => connection.notifyLossy(message),
  request: (message) => connection.request(message),
  effects: {
    writeStdout: (bytes) => new Promise((resolve) => output.write(bytes, () => resolve())),
    writeStderr: (bytes) => new Promise((resolve) => stderr.write(bytes, () => resolve())),
    exit: ports.exit,
  },
  model: new WarmModel((origin, open) => {
    if (runner.phase === 'idle') connection.notify({ method: 'model.held', params: { origin, open } });
  }),
  now: () => performance.now(),
  finished: () => ports.exit(0),
});

const connection = new Connection(process.stdin, output, {
  notification: (message) => runner.take(message),
  response: (message) => runner.answer(message),
  invalid: (reason, unreadRun) => {
    if (unreadRun !== null) runner.reject(unreadRun, reason);
    // Without a run there is nobody to log for.
    else if (runner.phase === 'idle') stderr.write(`agentd child: a frame was not understood: ${reason}\n`);
    else runner.complain(reason);
  },
  closed: leave,
});

/** The supervisor is gone. */
function leave(): void {
  // Before a run there is nobody to take along, and after it the supervisor has the result.
  if (runner.phase === 'running') leaveWithGroup(ports);
  else ports.exit(0);
}

/** A signal that asks for the end: the run's result may still leave, but nothing is waited for. */
function onSignal(signal: NodeJS.Signals): void {
  if (runner.phase === 'idle') ports.exit(0);
  runner.stop({ kind: 'cancelled', reason: signal });
  setTimeout(() => ports.exit(1), LAST_WORDS_MS);
}
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, onSignal);

function onFault(error: unknown): void {
  if (runner.phase !== 'running') {
    stderr.write(`agentd child: ${errorMessage(error)}\n`);
    ports.exit(1);
  }
  runner.crash(error);
  setTimeout(() => ports.exit(1), LAST_WORDS_MS);
}
process.on('uncaughtException', onFault);
process.on('unhandledRejection', onFault);

connection.open(process.pid);
setTimeout(() => {
  if (runner.phase === 'idle') void warmUp();
}, WARM_UP_AFTER_MS);
