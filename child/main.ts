import { Connection } from './connection.ts';
import { guardStdout } from './stdout-guard.ts';

const connection = new Connection(process.stdin, guardStdout(process.stdout, process.stderr), {
  notification: () => undefined,
  response: () => undefined,
  invalid: () => undefined,
  closed: () => process.exit(0),
});
connection.open(process.pid);
