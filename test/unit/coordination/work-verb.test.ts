import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Coordinator, startCoordinator } from '../../../supervisor/coordination/coordinator.ts';
import { DEFAULT_POLICY } from '../../../supervisor/coordination/ledger.ts';
import { SqliteLedger } from '../../../supervisor/coordination/sqlite/sqlite-ledger.ts';
import { InboxHarness } from '../../helpers/inbox-harness.ts';
import { nullLog } from '../../helpers/null-log.ts';
import { runVerb, type VerbEnded } from '../../helpers/run-verb.ts';
import { connectSdkClient } from '../../helpers/sdk-client.ts';

describe('agentd work', () => {
  let coordinator: Coordinator;

  beforeAll(async () => {
    const ledger = await SqliteLedger.open({
      path: ':memory:',
      policy: { ...DEFAULT_POLICY, maxAttempts: 1 },
    });
    coordinator = await startCoordinator({ ledger, listen: 'http://127.0.0.1:0', log: nullLog });
  });
  afterAll(() => coordinator.close(1_000));

  const work = (...args: string[]): Promise<VerbEnded> =>
    runVerb(['work', ...args], { env: { AGENT_COORDINATE_URL: coordinator.url } });
  const json = (text: string): unknown[] =>
    text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as unknown);

  it('submits, lists, shows, requeues, drops and counts, as a table and as JSON', async () => {
    const submitted = await work('submit', 'one', 'two', '--priority', 'high', '--kind', 'mail');
    expect(submitted).toMatchObject({ code: 0, stdout: 'one submitted\ntwo submitted\n' });
    expect((await work('submit', 'one')).stdout).toBe('one is known already\n');

    const { client, close } = await connectSdkClient(coordinator.url);
    const claimed = await client.callTool({ name: 'work.claim', arguments: { item: 'one', ttl_ms: 60_000 } });
    const { lease_id } = claimed.structuredContent as { lease_id: string };
    await client.callTool({ name: 'work.release', arguments: { lease_id, reason: 'crashed\u001b[31m' } });
    await close();

    const table = await work('list');
    expect(table.stdout).toMatch(
      /^STATE .*\ndead_letter +high +1\/1 .* mail .*one\nready +high +0\/1 .*two\n$/,
    );
    expect(json((await work('list', '--json', '--state', 'dead_letter')).stdout)).toMatchObject([
      { work_id: 'one', state: 'dead_letter' },
    ]);
    const shown = await work('show', 'one');
    expect(shown.stdout).toMatch(/state +dead_letter\n/);
    expect(shown.stdout).toMatch(/last error +crashed\?\[31m/);
    expect(await work('requeue', 'one', 'two')).toMatchObject({
      code: 1,
      stdout: 'one requeued\ntwo is no dead letter\n',
    });
    expect(await work('drop', 'two')).toMatchObject({ code: 0, stdout: 'two dropped\n' });
    expect(json((await work('stats', '--json')).stdout)).toMatchObject([
      { pending: 1, claimed: 0, deadletter: 0 },
    ]);
    expect((await work('stats')).stdout).toMatch(/^pending +1\nclaimed +0\n/);
    expect(await work('show', 'nobody')).toMatchObject({ code: 1, stdout: 'nobody is not known here\n' });
  });

  it('says what is wrong in a sentence with the right exit code', async () => {
    const cases: [string[], number, RegExp][] = [
      [
        ['stats', '--url', 'http://127.0.0.1:9/mcp'],
        6,
        /cannot reach http:\/\/127\.0\.0\.1:9\/mcp: .*ECONNREFUSED|bad port/,
      ],
      [['stats', '--url', 'nonsense'], 2, /--url "nonsense" is not a URL/],
      [['submit', 'x', '--delay', 'soon'], 2, /--delay "soon" is not a duration/],
      [['submit', 'x', 'y', '--claim-key', 'k'], 2, /--claim-key names one item/],
      [['submit', 'x', '--depends-on', 'nobody'], 1, /nobody, which is not known/],
      [['list', '--limit', '0'], 2, /--limit "0"/],
      [['list', '--state', 'lost'], 2, /Allowed choices/],
    ];
    for (const [args, code, message] of cases) {
      const ended = await work(...args);
      expect({ args, code: ended.code }).toEqual({ args, code });
      expect(ended.stderr).toMatch(message);
      expect(ended.stderr).not.toMatch(/\n\s+at /);
    }
  });

  it('says that nothing is tried again, and which flag names the server', async () => {
    const gone = await work('list', '--url', 'http://127.0.0.1:9/mcp');
    expect(gone).toMatchObject({ code: 6, stdout: '' });
    expect(gone.stderr).toContain('Start `agentd coordinate`, or give --url (or AGENT_COORDINATE_URL)');
    expect(gone.stderr).toContain('nothing is tried again');
    expect(gone.stderr).not.toContain('retried');
  });

  it('says that another MCP server is no coordination server', async () => {
    const inbox = new InboxHarness();
    try {
      await inbox.start();
      for (const [args, tool] of [
        [['submit', 'one'], 'work.submit'],
        [['list'], 'work.list'],
      ] as const) {
        const refused = await work(...args, '--url', inbox.url);
        expect(refused).toEqual({
          code: 1,
          stdout: '',
          stderr: `agentd: ${inbox.url} is no coordination server: it has no tool ${tool}\n  Give --url (or AGENT_COORDINATE_URL) the address that \`agentd coordinate\` listens at.\n`,
        });
      }
    } finally {
      await inbox.dispose();
    }
  });
});
