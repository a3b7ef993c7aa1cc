import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { eventually } from '../../helpers/eventually.ts';
import { mcpServers } from '../../helpers/mcp-servers.ts';
import { httpServer, type PeerHarness, stdioServer } from '../../helpers/peer-harness.ts';

// A server nobody here wrote.
const ENTRY = fileURLToPath(
  new URL('../../../node_modules/@modelcontextprotocol/server-everything/dist/index.js', import.meta.url),
);
const DOCUMENTS = 'demo://resource/static/document/';
const { harness } = mcpServers();
const children: ChildProcess[] = [];

async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

async function startHttp(port: number): Promise<ChildProcess> {
  const child = spawn(process.execPath, [ENTRY, 'streamableHttp'], {
    env: { ...process.env, PORT: String(port) },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  children.push(child);
  let said = '';
  child.stderr?.on('data', (chunk: Buffer) => {
    said += chunk.toString();
  });
  await eventually('server-everything to listen', () => said.includes('listening'));
  return child;
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, 'exit');
  child.kill('SIGKILL');
  await gone;
}

afterEach(async () => {
  await Promise.all(children.splice(0).map(end));
});

async function exercise(h: PeerHarness): Promise<void> {
  const peer = h.peers.get('everything');
  if (peer === undefined) throw new Error('no peer');
  const call = { timeoutMs: 20_000 };
  const listed = await peer.listResources(call);
  const uris = listed.map(({ uri }) => uri).filter((uri) => uri.startsWith(DOCUMENTS));
  expect(uris.length).toBeGreaterThan(1);
  expect([...h.updates].sort()).toEqual(uris.map((uri) => `reread ${uri}`).sort());
  const first = uris[0] ?? '';
  expect((await peer.readResource(first, call)).text.length).toBeGreaterThan(0);

  expect(h.peers.tools().map(({ name }) => name)).toContain('everything__get-sum');
  const sum = await peer.callTool('get-sum', { a: 2, b: 40 }, call);
  expect(sum.isError).toBe(false);
  expect(sum.text).toContain('42');
  const image = await peer.callTool('get-tiny-image', {}, call);
  expect(image.text).toMatch(/\[image image\/png, \d+ bytes\]/);
  const wrong = await peer.callTool('get-sum', { a: 'two' }, call);
  expect(wrong.isError).toBe(true);

  const notes: string[] = [];
  const long = await peer.callTool(
    'trigger-long-running-operation',
    { duration: 2, steps: 4 },
    { timeoutMs: 1_500, onProgress: (note) => notes.push(note) },
  );
  expect(long.text).toContain('completed');
  expect(notes).toEqual(['1/4', '2/4', '3/4', '4/4']);

  const before = h.updates.length;
  await peer.callTool('toggle-subscriber-updates', {}, call);
  await h.until('an update of every document', () => h.updates.length >= before + uris.length);
  expect(new Set(h.updates.slice(before))).toEqual(new Set(uris.map((uri) => `notification ${uri}`)));
}

describe('server-everything as a source', () => {
  it('is listed, subscribed to, heard and called over Streamable HTTP, also after it was killed', async () => {
    const port = await freePort();
    const child = await startHttp(port);
    const h = harness([httpServer('everything', `http://127.0.0.1:${port}/mcp`)]);
    h.peers.watch('everything', `${DOCUMENTS}**`);
    await h.peers.start();
    await h.complete('everything');
    await exercise(h);

    await end(child);
    await h.until('the loss', () => h.messages.some(({ type }) => type === 'peer.down'));
    const before = h.updates.length;
    await startHttp(port);
    await h.until('the return', () => h.messages.filter(({ type }) => type === 'peer.up').length === 2);
    await h.complete('everything');
    expect(h.updates.slice(before).every((update) => update.startsWith('reread '))).toBe(true);
    expect(h.updates.length).toBeGreaterThan(before);
  });

  it('is listed, subscribed to, heard and called over stdio', async () => {
    const h = harness([stdioServer('everything', [process.execPath, ENTRY, 'stdio'])]);
    h.peers.watch('everything', `${DOCUMENTS}**`);
    await h.peers.start();
    await h.complete('everything');
    await exercise(h);
  });
});
