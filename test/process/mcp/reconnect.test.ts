import { readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { eventually } from '../../helpers/eventually.ts';
import { mcpServers } from '../../helpers/mcp-servers.ts';
import { httpServer } from '../../helpers/peer-harness.ts';

const THREE = { 'a://1': 'one', 'a://2': 'two', 'a://3': 'three' };
const { fixture, harness } = mcpServers();

describe('a connection over Streamable HTTP', () => {
  it('announces each watched resource once after the start, and each later change once', async () => {
    const server = await fixture({ resources: THREE });
    const h = harness([httpServer('src', server.url)]);
    h.peers.watch('src', 'a://1');
    h.peers.watch('src', 'a://2');
    await h.peers.start();
    await h.complete('src');
    expect([...h.updates].sort()).toEqual(['reread a://1', 'reread a://2']);
    await server.put('a://2', 'changed');
    await server.put('a://3', 'not watched');
    await h.until('the change', () => h.updates.length >= 3);
    expect(h.updates.slice(2)).toEqual(['notification a://2']);
    expect(h.values.get('agent_subscriptions_active')).toBe(2);
  });

  it('re-subscribes and re-reads all three after a restart in which one changed (H15)', async () => {
    const server = await fixture({ resources: THREE });
    const h = harness([httpServer('src', server.url)]);
    for (const uri of Object.keys(THREE)) h.peers.watch('src', uri);
    await h.peers.start();
    await h.complete('src');
    await server.stop();
    await h.until('the loss', () => h.messages.some(({ type }) => type === 'peer.down'));
    expect(h.messages.at(-1)).toMatchObject({ type: 'subscriptions', active: 0, complete: false });
    server.resources.set('a://2', 'changed while nobody listened');
    const before = h.updates.length;
    await server.listen();
    await h.until('the return', () => h.updates.length >= before + 3);
    await h.complete('src');
    for (const uri of Object.keys(THREE)) expect(server.count(`subscribe ${uri}`)).toBe(2);
    expect([...h.updates.slice(before)].sort()).toEqual(['reread a://1', 'reread a://2', 'reread a://3']);
    expect(h.messages.filter(({ type }) => type === 'peer.up')).toEqual([
      { type: 'peer.up', server: 'src', first: true },
      { type: 'peer.up', server: 'src', first: false },
    ]);
    await server.put('a://1', 'later');
    await h.until('the later change', () => h.updates.length >= before + 4);
    expect(h.updates.at(-1)).toBe('notification a://1');
  });

  it('announces a change between subscribe and reading exactly once (H16a)', async () => {
    const server = await fixture({ resources: THREE });
    server.onSubscribed = (uri) => server.put(uri, 'changed right after the subscription took effect');
    const h = harness([httpServer('src', server.url)]);
    h.peers.watch('src', 'a://1');
    await h.peers.start();
    await h.complete('src');
    // A round trip on the same connection, so that nothing sent before it is still under way.
    await h.peers.get('src')?.readResource('a://1', { timeoutMs: 10_000 });
    expect(h.updates).toEqual(['reread a://1']);
  });

  it('initialises again when the server has forgotten the session', async () => {
    const server = await fixture({ resources: THREE });
    const h = harness([httpServer('src', server.url)]);
    h.peers.watch('src', 'a://1');
    await h.peers.start();
    await h.complete('src');
    server.forgetSessions();
    await h.until('the second session', () => h.updates.length === 2);
    expect(server.initialisations).toBe(2);
    expect(h.updates).toEqual(['reread a://1', 'reread a://1']);
  });

  it('reopens an event stream the server ended and re-reads, without a new session', async () => {
    const server = await fixture({ resources: THREE });
    const h = harness([httpServer('src', server.url)]);
    h.peers.watch('src', 'a://1');
    await h.peers.start();
    await h.complete('src');
    server.endStreams();
    await h.until('the second reading', () => h.updates.length === 2);
    expect(server.initialisations).toBe(1);
    expect(server.count('subscribe a://1')).toBe(1);
    await server.put('a://1', 'heard again');
    await h.until('the change', () => h.updates.length === 3);
    expect(h.updates.at(-1)).toBe('notification a://1');
  });

  it('reads everything again when the event stream opens late, because it was deaf until then', async () => {
    const server = await fixture({ resources: THREE });
    let open: () => void = () => undefined;
    server.onStream = () =>
      new Promise((resolve) => {
        open = resolve;
      });
    const h = harness([httpServer('src', server.url)]);
    h.peers.watch('src', 'a://1');
    await h.peers.start();
    await h.complete('src');
    await server.put('a://1', 'changed unheard');
    const before = h.updates.length;
    open();
    await h.until('the second reading', () => h.updates.length > before);
    expect(h.updates).toEqual(['reread a://1', 'reread a://1']);
    expect(server.initialisations).toBe(1);
  });

  it('notices an idle connection that went dead by its unanswered pings', async () => {
    const server = await fixture({ resources: THREE });
    const h = harness([httpServer('src', server.url)], { timings: { pingMs: 150 } });
    await h.peers.start();
    server.hangPings = true;
    await h.until('the loss', () => h.messages.some(({ type }) => type === 'peer.down'));
    server.hangPings = false;
    await h.until('the return', () => h.messages.filter(({ type }) => type === 'peer.up').length === 2);
    expect(h.lines.find(({ event }) => event === 'mcp.disconnect')?.fields.msg).toMatch(/2 pings in a row/);
  });

  it('survives connections that are reset under it', async () => {
    const server = await fixture({ resources: THREE });
    const h = harness([httpServer('src', server.url)]);
    h.peers.watch('src', 'a://1');
    await h.peers.start();
    await h.complete('src');
    server.resetSockets();
    await h.until('the second reading', () => h.updates.length >= 2);
    await server.put('a://1', 'after the reset');
    await h.until('the change', () => h.updates.includes('notification a://1'));
    expect(h.updates.at(-1)).toBe('notification a://1');
  });

  it('is not held up by a subscription that hangs or is refused, and makes it good later', async () => {
    const server = await fixture({ resources: THREE });
    server.subscribeFaults.set('a://1', 'hang');
    server.subscribeFaults.set('a://2', 2);
    const h = harness([httpServer('src', server.url)], { timings: { subscribeMs: 400 }, random: () => 0 });
    for (const uri of Object.keys(THREE)) h.peers.watch('src', uri);
    await h.peers.start();
    await h.until('the one that works', () => h.updates.includes('reread a://3'));
    await h.until('the refused one', () => h.updates.includes('reread a://2'));
    await h.until('the report', () =>
      h.messages.some((one) => one.type === 'subscriptions' && !one.complete),
    );
    expect(h.updates).not.toContain('reread a://1');
    server.subscribeFaults.clear();
    await h.complete('src');
    expect([...h.updates].sort()).toEqual(['reread a://1', 'reread a://2', 'reread a://3']);
    expect(server.count('subscribe a://2')).toBeGreaterThanOrEqual(3);
    expect(server.count('subscribe a://3')).toBe(1);
  });

  it('keeps nothing of the sessions it lost', async () => {
    const server = await fixture({ resources: THREE });
    const h = harness([httpServer('src', server.url)], { random: () => 0 });
    h.peers.watch('src', 'a://1');
    await h.peers.start();
    await h.complete('src');
    const openFiles = (): number => readdirSync('/proc/self/fd').length;
    let first = 0;
    for (let round = 1; round <= 5; round++) {
      server.forgetSessions();
      await h.until(`reading ${round + 1}`, () => h.updates.length === round + 1);
      if (round === 2) first = openFiles();
    }
    expect(server.initialisations).toBe(6);
    expect(server.sessionCount).toBe(1);
    await eventually('the sockets of lost sessions to go', () => server.openSockets <= 4);
    await eventually('their descriptors to go', () => openFiles() <= first + 4);
    expect(openFiles()).toBeLessThanOrEqual(first + 4);
  });
});
