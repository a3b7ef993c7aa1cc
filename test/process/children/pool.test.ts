import { writeFileSync } from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import { temporaryFolder } from '../../contract/support/temporary-folder.ts';
import { eventually } from '../../helpers/eventually.ts';
import { fixture, type Rig, rig, spec, survivors } from './harness.ts';

describe('the warm pool and warm sessions', () => {
  const folder = temporaryFolder();
  const marker = folder.path('allowed');
  let open: Rig[] = [];
  const rigged = (...args: Parameters<typeof rig>): Rig => {
    const made = rig(...args);
    open.push(made);
    return made;
  };
  afterEach(async () => {
    for (const one of open) await one.close();
    open = [];
  });

  it('a warm child takes its run in the tick of the launch, and is replaced', async () => {
    const { supervisor, messages, settled } = rigged(fixture('obliging'));
    supervisor.setWarmTarget(2);
    await eventually('two warm children', () => supervisor.warm === 2);
    const run = spec({ instruction: 'at once' });
    supervisor.launch(run);
    expect(messages).toMatchObject([{ type: 'run.started', runId: run.runId }]);
    expect(await settled(run.runId)).toMatchObject({ status: 'completed', result: 'at once' });
    await eventually('the replacement', () => supervisor.warm === 2);
  });

  it('the pool shrinks when told to', async () => {
    const { supervisor } = rigged(fixture('obliging'));
    supervisor.setWarmTarget(3);
    await eventually('three warm children', () => supervisor.warm === 3);
    supervisor.setWarmTarget(1);
    expect(supervisor.warm).toBe(1);
    await eventually('the others to leave', () => survivors().length === 1);
  });

  it('a warm child that dies is replaced, with the death on record', async () => {
    const { supervisor, metrics, lines } = rigged(fixture('obliging'));
    supervisor.setWarmTarget(1);
    await eventually('a warm child', () => supervisor.warm === 1);
    const [first] = survivors();
    process.kill(Number(first), 'SIGKILL');
    await eventually(
      'its replacement',
      () => supervisor.warm === 1 && survivors().some((pid) => pid !== first),
    );
    expect(metrics.counted('agent_subagent_restarts_total', { reason: 'crashed' })).toBe(1);
    expect(lines.some((line) => line.event === 'subagent.restart')).toBe(true);
  });

  it('warm children that never come up open the breaker instead of a storm', async () => {
    const { supervisor, metrics } = rigged(fixture('exits-early'), { random: () => 0 });
    supervisor.setWarmTarget(1);
    await eventually('the breaker', () => metrics.counted('agent_restarts_tripped_total') === 1);
    expect(metrics.counted('agent_limit_exceeded_total', { limit: 'restart_storm' })).toBe(1);
    expect(metrics.counted('agent_subagent_restarts_total', { reason: 'crashed' })).toBe(2);
    expect(survivors()).toEqual([]);
  });

  it('runs that wait for a child fail at once when none can be started, and a probe ends that', async () => {
    const { supervisor, messages, metrics, settled, run } = rigged(fixture('comes-up-once-allowed', marker), {
      random: () => 0,
    });
    const specs = Array.from({ length: 12 }, () => spec());
    for (const one of specs) supervisor.launch(one);
    const outcomes = await Promise.all(specs.map((one) => settled(one.runId)));
    expect(new Set(outcomes.map(({ cause }) => cause))).toEqual(new Set(['not_ready', 'spawn_failed']));
    const refused = outcomes.find(({ cause }) => cause === 'spawn_failed');
    expect(refused?.error?.message).toContain('no child can be started: the child ended before it was ready');
    expect(supervisor.canStart).toBe(false);
    expect(metrics.counted('agent_restarts_tripped_total')).toBe(1);
    expect(await run(spec())).toMatchObject({ status: 'crashed', cause: 'spawn_failed' });
    writeFileSync(marker, '');
    await eventually('a probe to come up', () => supervisor.canStart, 60_000);
    expect(await run(spec())).toMatchObject({ status: 'completed' });
    expect(messages.flatMap((one) => (one.type === 'starting' ? [one.possible] : []))).toEqual([false, true]);
  }, 90_000);

  it('many launches at once are all served, without crowding the machine or blocking the loop', async () => {
    const { supervisor, settled } = rigged(fixture('obliging'));
    const specs = Array.from({ length: 24 }, () => spec());
    let most = 0;
    const watch = setInterval(() => {
      most = Math.max(most, supervisor.inventory().filter((one) => one.state === 'spawning').length);
    }, 5);
    for (const one of specs) supervisor.launch(one);
    const outcomes = await Promise.all(specs.map((one) => settled(one.runId)));
    clearInterval(watch);
    expect(new Set(outcomes.map((outcome) => outcome.status))).toEqual(new Set(['completed']));
    expect(new Set(outcomes.map((outcome) => outcome.agentPath)).size).toBe(24);
    expect(supervisor.active).toBe(0);
  });

  it('a model that cannot be configured fails the run and keeps the child', async () => {
    let broken = true;
    const { run, supervisor } = rigged(fixture('obliging'), {
      model: () => {
        if (broken) throw new Error('secret file /nowhere cannot be read');
        return {
          block: { endpoints: [{ url: 'script:final' }], timeout_ms: 1_000, max_attempts: 1 },
          configured: [0],
        };
      },
    });
    supervisor.setWarmTarget(1);
    await eventually('a warm child', () => supervisor.warm === 1);
    const before = survivors();
    expect(await run(spec())).toMatchObject({
      status: 'crashed',
      cause: 'spawn_failed',
      error: { type: 'ModelConfiguration', message: 'secret file /nowhere cannot be read' },
    });
    broken = false;
    expect(await run(spec())).toMatchObject({ status: 'completed' });
    expect(before).toHaveLength(1);
  });

  it('the same run is never under way twice', async () => {
    const { supervisor, settled, messages, lines } = rigged(fixture('obliging'));
    const run = spec();
    supervisor.launch(run);
    supervisor.launch(run);
    await settled(run.runId);
    expect(messages.filter((message) => message.type === 'run.settled')).toHaveLength(1);
    expect(lines.some((line) => String(line.fields.msg).includes('launched twice'))).toBe(true);
  });

  it('a warm session serves its wakes in order, one turn at a time, in one child', async () => {
    const { begin, message, messages, settled, supervisor } = rigged(fixture('session'));
    const run = spec({ kind: 'session' });
    const begun = begin(run);
    // The first wake comes before there is a child for it.
    for (const uri of ['a', 'b', 'c']) supervisor.wake(run.runId, [uri, uri], [`about ${uri}`]);
    await begun;
    await message('session.turn', ({ sequence }) => sequence === 3);
    const turns = messages.flatMap((one) => (one.type === 'session.turn' ? [JSON.parse(one.result)] : []));
    expect(turns).toEqual(
      ['a', 'b', 'c'].map((uri) => ({ uris: [uri], messages: [`about ${uri}`], overlapped: false })),
    );
    expect(survivors()).toHaveLength(1);
    supervisor.stop(run.runId, 'cancelled');
    expect(await settled(run.runId)).toMatchObject({ status: 'cancelled', finalRung: 'cancel' });
  });

  it('a session that rests between wakes is not taken for stuck or late', async () => {
    const { begin, message, supervisor } = rigged(fixture('session'), {
      timings: { noProgressMs: 300, deadlineSlackMs: 0, pingMs: 100 },
    });
    const run = spec({ kind: 'session', limits: { ...spec().limits, deadline_ms: 400 } });
    await begin(run);
    supervisor.wake(run.runId, ['a'], []);
    await message('session.turn', ({ sequence }) => sequence === 1);
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    supervisor.wake(run.runId, ['b'], []);
    await message('session.turn', ({ sequence }) => sequence === 2);
    expect(supervisor.active).toBe(1);
  });
});
