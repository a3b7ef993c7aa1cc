import { afterEach, describe, expect, it } from 'vitest';
import { AgentdProcess } from '../../../scripts/fleet/agentd-process.ts';
import { FixtureServer } from '../../fixtures/mcp/fixture-server.ts';
import { FailingFleet, PLAYBOOK } from './failing-fleet.ts';

let fleet: FailingFleet | null = null;

afterEach(async () => {
  await fleet?.close();
  fleet = null;
});

/** A supervisor of its own, on servers at the given addresses; how it ended, and what it told people. */
async function supervise(
  inbox: string,
  coord: string,
  others: readonly string[] = [],
): Promise<{ code: number | null; told: string }> {
  const servers = [`inbox=${inbox}`, `coord=${coord}`, ...others];
  const flags = [...servers.flatMap((server) => ['--mcp', server]), '--instruction', 'x'];
  const more = ['--intelligence', `script:${PLAYBOOK}`, '--route', 'inbox:inbox:///**=>claim:coord'];
  const process = new AgentdProcess('the supervisor', ['supervise', ...flags, ...more]);
  const { code } = await process.exited;
  return { code, told: process.tail };
}

describe('a coordination server', () => {
  it('that is down at start ends the supervisor with 6, and it names server and address', async () => {
    const source = await FixtureServer.start({ resources: { 'inbox:///a': 'a' } });
    const gone = await FixtureServer.start();
    await gone.stop();
    try {
      const { code, told } = await supervise(source.url, gone.url);
      expect(code).toBe(6);
      expect(told).toContain(`cannot reach MCP server coord at ${new URL(gone.url).href}`);
    } finally {
      await source.stop();
    }
  }, 120_000);

  it('that is up without work tools ends the supervisor with 2, before anything has run', async () => {
    const source = await FixtureServer.start({ resources: { 'inbox:///a': 'a' } });
    const toolless = await FixtureServer.start({ tools: { 'work.claim': () => ({ content: [] }) } });
    try {
      const { code, told } = await supervise(source.url, toolless.url);
      expect(code).toBe(2);
      expect(told).toContain('coordination server coord is up but does not list work.ack');
      expect(toolless.count('call work.claim')).toBe(0);
    } finally {
      await source.stop();
      await toolless.stop();
    }
  }, 120_000);

  it('that is killed in the middle of a run and comes back finds the lease, the run and its result', async () => {
    // The lease outlasts the outage: renewals fail, and nothing is stopped for that (H09).
    fleet = await FailingFleet.start({ supervisors: [[], []] });
    const [item = ''] = await fleet.drop('before-1');
    const { supervisor } = await fleet.said('trigger.fired', item);
    await fleet.test.fleet.restartServer('coordinator');
    const ack = await fleet.said('claim.acked', item);
    expect(ack.supervisor).toBe(supervisor);
    expect(fleet.lines('claim.granted', item)).toHaveLength(1);
    expect(await fleet.record(item)).toMatchObject({ state: 'done', attempt: 1 });
    // What comes after the outage is claimed as ever.
    const items = await fleet.drop('quick-1', 'quick-2', 'quick-3');
    await fleet.acked(items);
    expect(await fleet.effects([item, ...items])).toEqual([1, 1, 1, 1]);
  }, 180_000);
});

describe('any required server', () => {
  it('that is down at start: exit 6, with nothing claimed from those that are up', async () => {
    const source = await FixtureServer.start({ resources: { 'inbox:///a': 'a' } });
    const claims: unknown[] = [];
    const answer = () => ({ content: [], structuredContent: { granted: false, held_by: 'test' } });
    const coord = await FixtureServer.start({
      tools: {
        'work.claim': ({ args }) => {
          claims.push(args);
          return answer();
        },
        'work.renew': answer,
        'work.ack': answer,
        'work.release': answer,
      },
    });
    const gone = await FixtureServer.start();
    await gone.stop();
    try {
      const { code, told } = await supervise(source.url, coord.url, [`third=${gone.url}`]);
      expect(code).toBe(6);
      expect(told).toContain(`cannot reach MCP server third at ${new URL(gone.url).href}`);
      expect(source.count('list')).toBeGreaterThan(0); // what is there is known, and waits
      expect(claims).toEqual([]);
    } finally {
      await source.stop();
      await coord.stop();
    }
  }, 120_000);
});

describe('a source of events', () => {
  it('that is killed in the middle of a run and comes back loses neither the run nor what changed meanwhile', async () => {
    fleet = await FailingFleet.start({ supervisors: [[], []] });
    const [item = ''] = await fleet.drop('before-1');
    await fleet.said('trigger.fired', item);
    const { inbox } = fleet.test.fleet;
    inbox.kill('SIGKILL');
    await inbox.exited;
    // Nobody can be told of this one: it is found by reading after the new subscription.
    const [meanwhile = ''] = await fleet.drop('quick-meanwhile');
    await fleet.test.fleet.restartServer('inbox');
    await fleet.acked([item, meanwhile], 120_000);
    expect(await fleet.effects([item, meanwhile])).toEqual([1, 1]);
  }, 240_000);
});
