import { afterEach, expect } from 'vitest';
import { FixtureServer } from '../fixtures/mcp/fixture-server.ts';
import { eventually } from './eventually.ts';
import { PeerHarness } from './peer-harness.ts';

/**
 * Servers and connections of one test file. After each test the connections are closed, and no
 * socket to a server may be left.
 */
export function mcpServers(): {
  fixture: (...args: Parameters<typeof FixtureServer.start>) => Promise<FixtureServer>;
  harness: (...args: ConstructorParameters<typeof PeerHarness>) => PeerHarness;
} {
  const servers: FixtureServer[] = [];
  const harnesses: PeerHarness[] = [];
  afterEach(async () => {
    await Promise.all(harnesses.splice(0).map(({ peers }) => peers.close(5_000)));
    for (const server of servers.splice(0)) {
      await eventually('the sockets of the closed connections to go', () => server.openSockets === 0);
      await server.stop();
      expect(server.openSockets).toBe(0);
    }
  });
  return {
    fixture: async (...args) => {
      const server = await FixtureServer.start(...args);
      servers.push(server);
      return server;
    },
    harness: (...args) => {
      const made = new PeerHarness(...args);
      harnesses.push(made);
      return made;
    },
  };
}
