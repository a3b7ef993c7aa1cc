import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { AgentdError } from '../../../protocol/errors.ts';
import { eventually } from '../../helpers/eventually.ts';
import { mcpServers } from '../../helpers/mcp-servers.ts';
import { httpServer } from '../../helpers/peer-harness.ts';

const { fixture, harness } = mcpServers();
const text = (value: string) => ({ content: [{ type: 'text' as const, text: value }] });
const pem = (name: string): string =>
  fileURLToPath(new URL(`../../fixtures/surface/${name}.pem`, import.meta.url));

describe('the set of peers', () => {
  it('follows a glob over pages, additions and removals on a real server', async () => {
    const resources = Object.fromEntries(Array.from({ length: 250 }, (_, n) => [`a://docs/${n}`, 'text']));
    const server = await fixture({ resources: { ...resources, 'a://other/1': 'text' }, pageSize: 40 });
    const h = harness([httpServer('src', server.url)]);
    h.peers.watch('src', 'a://docs/**');
    await h.peers.start();
    await h.complete('src');
    expect(new Set(h.updates)).toEqual(new Set(Object.keys(resources).map((uri) => `reread ${uri}`)));
    expect(h.updates).toHaveLength(250);
    expect(server.count('list')).toBe(7);

    await server.put('a://docs/sub/new one', 'text');
    await h.until('the new one', () => h.updates.length > 250);
    expect(h.updates.slice(250)).toEqual(['listed a://docs/sub/new one']);
    await server.put('a://docs/sub/new one', 'changed');
    await h.until('its change', () => h.updates.length > 251);
    expect(h.updates.at(-1)).toBe('notification a://docs/sub/new one');

    await server.remove('a://docs/7');
    await eventually('the end of its subscription', () => server.count('unsubscribe a://docs/7') === 1);
    await h.until('the report', () => h.values.get('agent_subscriptions_active') === 250);
    expect(h.updates).toHaveLength(252);
  });

  it('loses no update of many that arrive while subscriptions are being made', async () => {
    const uris = Array.from({ length: 300 }, (_, n) => `a://docs/${n}`);
    const server = await fixture({ resources: Object.fromEntries(uris.map((uri) => [uri, 'before'])) });
    const h = harness([httpServer('src', server.url)]);
    h.peers.watch('src', 'a://docs/*');
    const storm = h
      .until('the first', () => h.updates.length > 0)
      .then(async () => {
        for (const uri of uris) await server.put(uri, 'after');
      });
    await h.peers.start();
    await storm;
    await h.complete('src');
    await server.put('a://docs/0', 'the last word');
    await h.until('the last word', () => h.updates.at(-1) === 'notification a://docs/0');
    // Each is announced after its last change or reading, and no more than twice (but for the last word).
    const counts = new Map<string, number>();
    for (const update of h.updates.slice(0, -1)) {
      const uri = update.slice(update.indexOf(' ') + 1);
      counts.set(uri, (counts.get(uri) ?? 0) + 1);
    }
    expect(new Set(counts.keys())).toEqual(new Set(uris));
    expect(Math.max(...counts.values())).toBeLessThanOrEqual(2);
  });

  it('names the tools of all live servers, follows their changes, and forgets no name', async () => {
    const one = await fixture({ tools: { 'work.claim': () => text(''), 'a b': () => text('') } });
    const two = await fixture({ tools: { 'a b': () => text(''), a_b: () => text('') } });
    const h = harness([httpServer('one', one.url), httpServer('two', two.url)]);
    await h.peers.start();
    const names = h.peers.tools().map(({ name }) => name);
    expect(names.slice(0, 2)).toEqual(['one__work_claim', 'one__a_b']);
    expect(names[2]).toMatch(/^two__a_b_[0-9a-f]{8}$/);
    expect(names[3]).toMatch(/^two__a_b_[0-9a-f]{8}$/);
    expect(h.peers.tools()[0]).toEqual({
      name: 'one__work_claim',
      server: 'one',
      tool: 'work.claim',
      description: 'the tool work.claim',
      input_schema: { type: 'object' },
    });
    one.tools.set('later', () => text(''));
    await one.toolsChanged();
    await eventually('the new tool', () => h.peers.get('one')?.toolNames.includes('later'));
    await one.stop();
    await h.until('the loss', () => h.messages.some(({ type }) => type === 'peer.down'));
    expect(h.peers.tools().map(({ name }) => name)).toEqual(names.slice(2));
  });

  it('says nothing more once it is disarmed, but still calls and reconnects', async () => {
    const server = await fixture({ resources: { 'a://1': 'one' }, tools: { quick: () => text('here') } });
    const h = harness([httpServer('src', server.url)]);
    h.peers.watch('src', 'a://1');
    await h.peers.start();
    await h.complete('src');
    h.peers.disarm();
    const before = h.messages.length;
    await server.put('a://1', 'changed');
    await server.stop();
    await eventually('the loss', () => h.peers.get('src')?.state !== 'live');
    await server.listen();
    expect(await h.peers.get('src')?.whenLive(30_000)).toBe(true);
    const answer = await h.peers.get('src')?.callTool('quick', {}, { timeoutMs: 10_000 });
    expect(answer?.text).toBe('here');
    expect(h.messages).toHaveLength(before);
  });

  it('ends its sessions at the servers when it closes, and can be closed at any time', async () => {
    const server = await fixture({ resources: { 'a://1': 'one' } });
    const h = harness([httpServer('src', server.url)]);
    await h.peers.start();
    expect(server.sessionCount).toBe(1);
    expect(server.clients).toEqual([{ name: 'agentd', version: '0.0.0' }]);
    await h.peers.close(5_000);
    await eventually('the end of the session', () => server.sessionCount === 0);
    const early = harness([httpServer('src', server.url)]);
    const starting = early.peers.start().catch((error: unknown) => error);
    await early.peers.close(5_000);
    expect(await starting).toBeInstanceOf(AgentdError);
    await eventually('the sockets to go', () => server.openSockets === 0);
    expect(early.peers.get('src')?.state).toBe('lost');
  });

  it('answers for servers and calls that cannot be', async () => {
    const server = await fixture({});
    const h = harness([httpServer('src', server.url)]);
    expect(() => h.peers.watch('elsewhere', 'a://1')).toThrow(
      /no MCP server is named elsewhere; there are src/,
    );
    const peer = h.peers.get('src');
    await expect(peer?.callTool('x', {}, { timeoutMs: 1_000 })).rejects.toMatchObject({
      code: 'MCP_UNAVAILABLE',
      message: 'MCP server src is not connected',
    });
    await h.peers.start();
    await expect(peer?.readResource('a://none', { timeoutMs: 10_000 })).rejects.toMatchObject({
      code: 'MCP_PROTOCOL',
    });
  });

  it('trusts a server of a private authority only with its certificate', async () => {
    const tls = {
      cert: readFileSync(pem('server.cert'), 'utf8'),
      key: readFileSync(pem('server.key'), 'utf8'),
    };
    const server = await fixture({ tls, resources: { 'a://1': 'one' } });
    const distrustful = harness([httpServer('src', server.url)], { startBudgetMs: 500 });
    const error = await distrustful.peers.start().catch((thrown: unknown) => thrown);
    expect(String(error)).toMatch(/cannot reach MCP server src at https:.*certificate/);
    await distrustful.peers.close(5_000);
    const trusting = harness([httpServer('src', server.url)], { tlsCa: pem('authority.cert') });
    await trusting.peers.start();
    const read = await trusting.peers.get('src')?.readResource('a://1', { timeoutMs: 10_000 });
    expect(read?.text).toBe('one');
    const lost = harness([httpServer('src', server.url)], { tlsCa: '/nowhere/ca.pem' });
    await expect(lost.peers.start()).rejects.toMatchObject({ code: 'TLS_UNUSABLE', exitCode: 2 });
  });
});
