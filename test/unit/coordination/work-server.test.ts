import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  ackResult,
  claimNextResult,
  claimResult,
  deadLetterResult,
  listResult,
  META,
  renewResult,
  resultResult,
  statsResult,
  submitResult,
} from '../../../protocol/work-tools.ts';
import { DEFAULT_POLICY, type Ledger } from '../../../supervisor/coordination/ledger.ts';
import { SqliteLedger } from '../../../supervisor/coordination/sqlite/sqlite-ledger.ts';
import { workServer } from '../../../supervisor/coordination/work-server.ts';
import { nullLog } from '../../helpers/null-log.ts';

describe('the work server', () => {
  let ledger: Ledger;
  let outcomes: string[];
  const clients: Client[] = [];
  let subscribed: string[];

  beforeEach(async () => {
    ledger = await SqliteLedger.open({ path: ':memory:', policy: { ...DEFAULT_POLICY, maxAttempts: 2 } });
    outcomes = [];
    subscribed = [];
  });
  afterEach(async () => {
    for (const client of clients.splice(0)) await client.close();
    await ledger.close();
  });

  async function connect(sessionId: string): Promise<Client> {
    const [near, far] = InMemoryTransport.createLinkedPair();
    const session = {
      sessionId,
      adopted: false,
      subscribe: (uri: string) => void subscribed.push(uri),
      unsubscribe: (uri: string) => void subscribed.splice(subscribed.indexOf(uri), 1),
    };
    const onCall = (tool: string, outcome: string): void => void outcomes.push(`${tool} ${outcome}`);
    await workServer({ ledger, log: nullLog, onCall }, session).connect(far);
    const client = new Client({ name: 'test', version: '1' });
    await client.connect(near);
    clients.push(client);
    return client;
  }

  type Answer = { isError?: boolean; content: { text: string }[]; structuredContent: unknown };
  async function raw(client: Client, name: string, args: object, meta?: object): Promise<Answer> {
    const request = { name, arguments: { ...args }, ...(meta === undefined ? {} : { _meta: { ...meta } }) };
    return (await client.callTool(request)) as Answer;
  }
  async function call(client: Client, name: string, args: object, instance = 'a', more: object = {}) {
    const answer = await raw(client, name, args, { [META.INSTANCE]: instance, ...more });
    expect(answer.isError, answer.content[0]?.text).toBeUndefined();
    expect(JSON.parse(answer.content[0]?.text ?? '')).toEqual(answer.structuredContent);
    return answer.structuredContent;
  }

  it('lists every tool of the contract with a schema of its arguments', async () => {
    const { tools } = await (await connect('s')).listTools();
    expect(tools.map((tool) => tool.name)).toEqual(
      expect.arrayContaining([
        'work.claim',
        'work.renew',
        'work.ack',
        'work.release',
        'work.submit',
        'work.stats',
        'work.result',
        'work.deadletter',
        'work.claim_next',
      ]),
    );
    const claim = tools.find((tool) => tool.name === 'work.claim');
    expect(claim?.inputSchema).toMatchObject({ type: 'object', required: ['item', 'ttl_ms'] });
  });

  it('claims, renews and acks by the claim key, in the shapes of the contract', async () => {
    const client = await connect('s');
    const key = { [META.CLAIM_KEY]: '01ARZ3NDEKTSV4RRFFQ69G5FAV' };
    const args = { item: 'file:///inbox/a.txt', ttl_ms: 5_000 };
    const grant = claimResult.parse(await call(client, 'work.claim', args, 'a', key));
    if (!grant.granted) throw new Error('not granted');
    expect(grant).toMatchObject({ expires_in_ms: 5_000, fencing_token: 1, attempt: 1 });
    const lost = claimResult.parse(await call(client, 'work.claim', args, 'b', key));
    expect(lost).toMatchObject({ granted: false, held_by: 'a' });
    const lease = { lease_id: grant.lease_id };
    expect(renewResult.parse(await call(client, 'work.renew', { ...lease, ttl_ms: 9_000 }))).toEqual({
      ok: true,
      expires_in_ms: 9_000,
    });
    expect(await call(client, 'work.renew', { ...lease, ttl_ms: 9_000 }, 'b')).toEqual({
      ok: false,
      reason: 'not_holder',
    });
    const ack = { ...lease, result: { summary: 'read' } };
    expect(ackResult.parse(await call(client, 'work.ack', ack))).toEqual({ ok: true });
    expect(await call(client, 'work.ack', ack)).toEqual({ ok: true });
    expect(await call(client, 'work.claim', args, 'b', key)).toEqual({ granted: false, held_by: '<acked>' });
    const found = resultResult.parse(await call(client, 'work.result', { work_id: key[META.CLAIM_KEY] }));
    expect(found).toMatchObject({ found: true, state: 'done', item: args.item, result: { summary: 'read' } });
    expect(outcomes).toEqual(
      expect.arrayContaining(['work.claim lost', 'work.renew refused', 'work.ack ok']),
    );
  });

  it('takes the item as the claim key when the call carries none', async () => {
    const client = await connect('s');
    await call(client, 'work.claim', { item: 'x', ttl_ms: 5_000 });
    expect(await call(client, 'work.result', { work_id: 'x' })).toMatchObject({
      state: 'leased',
      held_by: 'a',
    });
    expect(await call(client, 'work.result', { work_id: 'y' })).toEqual({ found: false, work_id: 'y' });
  });

  it('never takes two clients without an instance for one another', async () => {
    const [one, two] = [await connect('s1'), await connect('s2')];
    const first = (await raw(one, 'work.claim', { item: 'x', ttl_ms: 5_000 })).structuredContent;
    const grant = claimResult.parse(first);
    if (!grant.granted) throw new Error('not granted');
    const second = await raw(two, 'work.claim', { item: 'x', ttl_ms: 5_000 });
    expect(second.structuredContent).toMatchObject({ granted: false });
    const stolen = await raw(two, 'work.ack', { lease_id: grant.lease_id });
    expect(stolen.structuredContent).toEqual({ ok: false, reason: 'not_holder' });
    const own = await raw(one, 'work.ack', { lease_id: grant.lease_id });
    expect(own.structuredContent).toEqual({ ok: true });
  });

  it('submits, counts, hands out, releases, dead-letters, requeues and drops', async () => {
    const client = await connect('s');
    for (const item of ['a', 'b']) {
      const answer = await call(client, 'work.submit', { item, priority: 'high', kind: 'mail', tenant: 't' });
      expect(submitResult.parse(answer)).toEqual({ work_id: item, created: true });
    }
    expect(statsResult.parse(await call(client, 'work.stats', {}))).toMatchObject({ pending: 2, claimed: 0 });
    for (const round of [1, 2]) {
      const next = await call(client, 'work.claim_next', { ttl_ms: 5_000, kinds: ['mail'] });
      const [lease] = claimNextResult.parse(next).leases;
      if (lease === undefined) throw new Error('nothing was offered');
      expect(lease.attempt).toBe(1);
      const reason = round === 1 ? 'drain' : 'crashed';
      expect(await call(client, 'work.release', { lease_id: lease.lease_id, reason })).toEqual({ ok: true });
    }
    const again = await call(client, 'work.claim', { item: 'a', ttl_ms: 5_000 });
    const grant = claimResult.parse(again);
    if (!grant.granted) throw new Error('not granted');
    expect(grant.attempt).toBe(2);
    await call(client, 'work.release', { lease_id: grant.lease_id, reason: 'crashed again' });
    const dead = listResult.parse(await call(client, 'work.deadletter', { action: 'list' }));
    expect(dead.items).toMatchObject([{ work_id: 'a', last_error: 'crashed again', attempt: 2 }]);
    expect(
      deadLetterResult.parse(await call(client, 'work.deadletter', { action: 'requeue', work_id: 'a' })),
    ).toEqual({
      ok: true,
    });
    expect(await call(client, 'work.deadletter', { action: 'drop', work_id: 'b' })).toEqual({ ok: true });
    const page = listResult.parse(await call(client, 'work.list', { limit: 1 }));
    expect(page.items.map((item) => item.work_id)).toEqual(['a']);
    const rest = listResult.parse(await call(client, 'work.list', { after: page.next }));
    expect(rest.items).toMatchObject([{ work_id: 'b', state: 'cancelled' }]);
  });

  it('answers arguments it cannot accept with isError and a sentence, never a stack', async () => {
    const client = await connect('s');
    const cases: [string, object, object | undefined, RegExp][] = [
      ['work.claim', { item: 'x' }, undefined, /work\.claim: ttl_ms/],
      ['work.claim', { item: '', ttl_ms: 5 }, undefined, /work\.claim: item/],
      ['work.claim', { item: 'x', ttl_ms: 1.5 }, undefined, /ttl_ms/],
      ['work.claim', { item: 'x', ttl_ms: 5 }, { [META.INSTANCE]: 7 }, /agent\/instance/],
      ['work.claim', { item: 'x', ttl_ms: 5 }, { [META.CLAIM_KEY]: '' }, /agent\/claim_key/],
      ['work.submit', { item: 'x', depends_on: ['nobody'] }, undefined, /nobody, which is not known/],
      ['work.deadletter', { action: 'drop' }, undefined, /needs work_id/],
      [
        'work.ack',
        { lease_id: '1-x', result: 'y'.repeat(1024 * 1024) },
        undefined,
        /result is \d+ characters/,
      ],
    ];
    for (const [tool, args, meta, message] of cases) {
      const answer = await raw(client, tool, args, meta);
      expect(answer.isError).toBe(true);
      expect(answer.content[0]?.text).toMatch(message);
      expect(answer.content[0]?.text).not.toMatch(/\n\s+at /);
    }
    await expect(raw(client, 'work.unknown', {})).rejects.toMatchObject({ code: -32602 });
  });

  it('answers with isError when the ledger is away', async () => {
    const client = await connect('s');
    await ledger.close();
    const answer = await raw(client, 'work.claim', { item: 'x', ttl_ms: 5_000 });
    expect(answer).toMatchObject({
      isError: true,
      _meta: { 'agentd/error': { code: 'LEDGER_UNAVAILABLE', kind: 'retry' } },
    });
  });

  it('shows pending work as a resource that can be subscribed to, and no other', async () => {
    const client = await connect('s');
    await call(client, 'work.submit', { item: 'a' });
    const { resources } = await client.listResources();
    expect(resources.map((resource) => resource.uri)).toEqual(['work://pending']);
    const { contents } = await client.readResource({ uri: 'work://pending' });
    const [content] = contents;
    const body: unknown = JSON.parse(content !== undefined && 'text' in content ? content.text : '');
    expect(body).toMatchObject({
      pending: 1,
      claimed: 0,
      deadletter: 0,
      items: [{ work_id: 'a', state: 'ready' }],
    });
    await client.subscribeResource({ uri: 'work://pending' });
    expect(subscribed).toEqual(['work://pending']);
    await client.unsubscribeResource({ uri: 'work://pending' });
    expect(subscribed).toEqual([]);
    await expect(client.readResource({ uri: 'work://other' })).rejects.toMatchObject({ code: -32002 });
  });
});
