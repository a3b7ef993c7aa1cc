import { WebSocket } from 'undici';
import { InboxClient, tally } from '../fleet/inbox-client.ts';

// Runs on the container's network: `inside.ts tally URL` prints what an inbox holds as JSON, and
// `inside.ts wedge PORT` keeps the main thread of a Node process busy for ever, through its inspector.

const [what, where = ''] = process.argv.slice(2);

if (what === 'tally') {
  const inbox = await InboxClient.connect(where);
  try {
    process.stdout.write(`${JSON.stringify(tally(await inbox.documents(), await inbox.results()))}\n`);
  } finally {
    await inbox.close();
  }
} else if (what === 'wedge') {
  const reply = await fetch(`http://127.0.0.1:${where}/json/list`);
  const [target] = (await reply.json()) as { webSocketDebuggerUrl: string }[];
  if (target === undefined) throw new Error('the inspector lists no target');
  const socket = new WebSocket(target.webSocketDebuggerUrl);
  await new Promise<void>((resolve, reject) => {
    socket.addEventListener('open', () => resolve());
    socket.addEventListener('error', () => reject(new Error('the inspector refuses')));
  });
  socket.send(JSON.stringify({ id: 1, method: 'Runtime.evaluate', params: { expression: 'for(;;){}' } }));
  // No answer will come. The message has been taken once the socket has nothing left to send.
  while (socket.bufferedAmount > 0) await new Promise((resolve) => setImmediate(resolve));
  await new Promise((resolve) => setTimeout(resolve, 200));
  process.exit(0);
} else {
  process.stderr.write('usage: inside.ts tally URL | wedge PORT\n');
  process.exit(2);
}
