import { describe, expect, it } from 'vitest';
import type { Peer, Peers } from '../../../supervisor/mcp/peers.ts';
import { requireTools, toolsForStyle } from '../../../supervisor/mcp/required-tools.ts';

function peersWith(state: Peer['state'], toolNames: readonly string[]): Peers {
  const unused = (): never => {
    throw new Error('not used here');
  };
  const peer: Peer = {
    name: 'ledger',
    tags: [],
    state,
    toolNames,
    callTool: unused,
    readResource: unused,
    listResources: unused,
    whenLive: unused,
  };
  return {
    get: (name) => (name === 'ledger' ? peer : undefined),
    all: [peer],
    start: unused,
    tools: unused,
    watch: unused,
    unwatch: unused,
    disarm: unused,
    close: unused,
  };
}

describe('the tools a claim route needs', () => {
  it('are work.claim and work.ack, or lease.cas', () => {
    expect(toolsForStyle('tool')).toEqual(['work.claim', 'work.ack']);
    expect(toolsForStyle('resource')).toEqual(['lease.cas']);
  });

  it('are missed by name, with exit 2, on a server that is up', () => {
    const peers = peersWith('live', ['work.claim', 'echo']);
    expect(() => requireTools(peers, 'ledger', ['work.claim', 'work.ack'])).toThrow(
      expect.objectContaining({
        code: 'COORDINATION_WITHOUT_WORK_TOOLS',
        exitCode: 2,
        message: 'coordination server ledger is up but does not list work.ack, which its claim route needs',
      }),
    );
    expect(() => requireTools(peers, 'ledger', ['work.claim'])).not.toThrow();
  });

  it('are not asked of a server that is down, and a server that is not configured is named', () => {
    expect(() => requireTools(peersWith('retrying', []), 'ledger', ['work.ack'])).not.toThrow();
    expect(() => requireTools(peersWith('live', []), 'other', ['work.ack'])).toThrow(/server other/);
  });
});
