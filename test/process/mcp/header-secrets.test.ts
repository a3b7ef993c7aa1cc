import { describe, expect, it } from 'vitest';
import { eventually } from '../../helpers/eventually.ts';
import { mcpServers } from '../../helpers/mcp-servers.ts';
import { httpServer } from '../../helpers/peer-harness.ts';

const { fixture, harness } = mcpServers();
const text = (value: string) => ({ content: [{ type: 'text' as const, text: value }] });

describe('a connection with a secret in a header', () => {
  it('reads a secret when it is used, and fails on one that is missing', async () => {
    const server = await fixture({ authorization: 'Bearer right', tools: { quick: () => text('here') } });
    const reference = { secret: 'env' as const, name: 'AGENTD_TEST_BEARER' };
    const transport = { kind: 'http' as const, url: server.url, headers: { authorization: reference } };
    const h = harness([httpServer('src', server.url, { transport })], { startBudgetMs: 120_000 });
    await expect(h.peers.start()).rejects.toMatchObject({ kind: 'configuration', exitCode: 2 });
    process.env.AGENTD_TEST_BEARER = 'Bearer right';
    try {
      expect(await h.peers.get('src')?.whenLive(30_000)).toBe(true);
      expect(JSON.stringify(h.lines)).not.toContain('Bearer right');
    } finally {
      delete process.env.AGENTD_TEST_BEARER;
    }
  });

  it('refuses to send a secret that no header can carry, by its source, and goes on when it is mended', async () => {
    const server = await fixture({ authorization: 'Bearer right', tools: { quick: () => text('here') } });
    const reference = { secret: 'env' as const, name: 'AGENTD_TEST_BROKEN_BEARER' };
    const transport = { kind: 'http' as const, url: server.url, headers: { authorization: reference } };
    const h = harness([httpServer('src', server.url, { transport })], { startBudgetMs: 120_000 });
    process.env.AGENTD_TEST_BROKEN_BEARER = 'Bearer canary\nright';
    try {
      const refused = {
        code: 'SECRET_UNUSABLE',
        exitCode: 2,
        message:
          'secret AGENTD_TEST_BROKEN_BEARER in the environment holds a line break, so no HTTP header can carry it',
      };
      await expect(h.peers.start()).rejects.toMatchObject(refused);
      process.env.AGENTD_TEST_BROKEN_BEARER = 'Bearer right';
      expect(await h.peers.get('src')?.whenLive(30_000)).toBe(true);
      // It rotates into something unusable: that call fails, with the reason, and the server is reached again later.
      process.env.AGENTD_TEST_BROKEN_BEARER = 'Bearer canary\nright';
      const call = () => h.peers.get('src')?.callTool('quick', {}, { timeoutMs: 30_000 });
      await expect(call()).rejects.toMatchObject(refused);
      const told = () =>
        h.lines.some(({ fields }) => JSON.stringify(fields).includes('secret AGENTD_TEST_BROKEN_BEARER'));
      await eventually('the log to name the secret', told);
      process.env.AGENTD_TEST_BROKEN_BEARER = 'Bearer right';
      expect(await h.peers.get('src')?.whenLive(30_000)).toBe(true);
      expect(await call()).toMatchObject({ isError: false, text: 'here' });
      expect(JSON.stringify(h.lines)).not.toContain('canary');
    } finally {
      delete process.env.AGENTD_TEST_BROKEN_BEARER;
    }
  });
});
