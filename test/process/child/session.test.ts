import { afterEach, describe, expect, test } from 'vitest';
import { type ModelServer, startModelServer } from '../../fixtures/model-server.ts';
import { DrivenChild, type DriverOptions, runStart } from '../../helpers/child-driver.ts';
import { playbookFile, removePlaybooks } from './playbook-file.ts';

const children: DrivenChild[] = [];
const servers: ModelServer[] = [];

function session(
  intelligence: string,
  overrides: Parameters<typeof runStart>[1] = {},
  options: DriverOptions = {},
) {
  const child = new DrivenChild(options);
  children.push(child);
  child.send(runStart(intelligence, { kind: 'session', ...overrides }));
  const wake = (sequence: number, uris: string[], messages: string[] = []): void =>
    child.send({ method: 'session.wake', params: { run_id: 'run-1', sequence, uris, messages } });
  const turn = (sequence: number) =>
    child.notification('session.turn', (params) => params.sequence === sequence);
  return { child, wake, turn };
}

afterEach(async () => {
  for (const child of children.splice(0)) await child.stop();
  for (const server of servers.splice(0)) await server.close();
  removePlaybooks();
});

describe('warm session in a real child', () => {
  test('each wake is one turn, in order, and the playbook begins anew', async () => {
    const script = 'turns: [{tool: {name: test__echo}}, {final: "saw {{event.uri}}"}]';
    const { child, turn, wake } = session(playbookFile(script));
    await child.notification('run.progress', (p) => p.kind === 'start');
    for (let sequence = 1; sequence <= 3; sequence++) {
      wake(sequence, [`a://${sequence}`, 'a://more']);
      expect(await turn(sequence)).toMatchObject({
        status: 'completed',
        result: `saw a://${sequence}`,
        usage: { steps: sequence * 2 },
      });
    }
    child.send({ method: 'run.cancel', params: { run_id: 'run-1', reason: 'enough' } });
    expect(await child.result()).toMatchObject({ status: 'cancelled', usage: { steps: 6 } });
    expect((await child.exited).code).toBe(0);
  });

  test('wakes that arrive during a turn wait for it', async () => {
    const { child, turn, wake } = session(playbookFile('turns: [{sleep: 100}, {final: "{{event.uri}}"}]'));
    for (const sequence of [1, 2, 3]) wake(sequence, [`a://${sequence}`]);
    await turn(3);
    const turns = child.frames.flatMap((f) =>
      f.type === 'notification' && f.body.method === 'session.turn' ? [f.body.params.sequence] : [],
    );
    expect(turns).toEqual([1, 2, 3]);
  });

  test('the conversation is kept: the instruction comes once, the wakes and answers add up', async () => {
    const server = await startModelServer([{ kind: 'answer', text: 'noted' }]);
    servers.push(server);
    const { turn, wake } = session(server.origin, { instruction: 'Keep a diary.' });
    wake(1, ['a://1']);
    await turn(1);
    wake(2, [], ['hello']);
    await turn(2);
    const roles = (index: number): unknown[] => {
      const messages = (server.requests[index]?.body.messages ?? []) as { role: string; content: string }[];
      return messages.map((message) => [message.role, message.content]);
    };
    expect(roles(0)).toMatchObject([
      ['system', expect.any(String)],
      ['user', expect.stringMatching(/^Keep a diary\.[\s\S]*- a:\/\/1$/)],
    ]);
    expect(roles(1)).toMatchObject([
      ['system', expect.any(String)],
      ['user', expect.stringContaining('a://1')],
      ['assistant', 'noted'],
      ['user', 'Message for you:\nhello'],
    ]);
  });

  test('limits count for each wake: a spent budget or deadline ends the turn, not the session', async () => {
    const limits = { max_steps: 1, max_tokens: 1000, deadline_ms: 300, tool_timeout_ms: 1000 };
    const script = `
cases:
  - when: {uri: "slow://*"}
    turns: [{hang: true}]
  - when: {uri: "long://*"}
    turns: [{tool: {name: test__echo}}, {final: x}]
  - turns: [{final: fine}]
`;
    const { child, turn, wake } = session(playbookFile(script), { limits });
    wake(1, ['slow://1']);
    expect((await turn(1)).status).toBe('deadline');
    wake(2, ['long://1']);
    expect((await turn(2)).status).toBe('exhausted_steps');
    wake(3, ['other://1']);
    expect((await turn(3)).status).toBe('completed');
    child.send({ method: 'run.wind_down', params: { run_id: 'run-1', deadline_ms: 10_000 } });
    expect((await child.result()).status).toBe('cancelled');
  });

  test('a wind-down in the middle of a wake answers the wake, then ends the session', async () => {
    const script = 'turns: [{sleep: 200}, {tool: {name: test__echo}}, {final: x}]';
    const { child, turn, wake } = session(playbookFile(script));
    wake(1, ['a://1']);
    await child.notification('run.progress', (p) => p.kind === 'step');
    child.send({ method: 'run.wind_down', params: { run_id: 'run-1', deadline_ms: 20_000 } });
    expect((await turn(1)).status).toBe('cancelled');
    expect((await child.result()).status).toBe('cancelled');
  });

  test('a paused session takes a wake and answers it after the resume', async () => {
    const { child, turn, wake } = session('script:final');
    child.send({ method: 'run.pause', params: { run_id: 'run-1' } });
    wake(1, ['a://1']);
    await child.notification('run.progress', (p) => p.kind === 'paused');
    child.send({ method: 'run.resume', params: { run_id: 'run-1' } });
    expect((await turn(1)).status).toBe('completed');
  });

  test('the transcript of a long session stays bounded', async () => {
    const server = await startModelServer([{ kind: 'answer', text: 'y'.repeat(20_000) }]);
    servers.push(server);
    const { turn, wake } = session(server.origin);
    for (let sequence = 1; sequence <= 60; sequence++) {
      wake(sequence, ['a://1'], ['m'.repeat(20_000)]);
      await turn(sequence);
    }
    const largest = Math.max(...server.requests.map((request) => JSON.stringify(request.body).length));
    expect(largest).toBeLessThan(700_000);
    expect(server.requests).toHaveLength(60);
  });
});
