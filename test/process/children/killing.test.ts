import { afterEach, describe, expect, it } from 'vitest';
import { eventually } from '../../helpers/eventually.ts';
import { fixture, isRunning, type Rig, rig, spec, survivors } from './harness.ts';

describe('killing', () => {
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

  it('H01: a child that ignores the request and SIGTERM is killed at the grace, and the outcome names that rung', async () => {
    const { begin, settled, supervisor, lines } = rigged(fixture('ignores-sigterm'));
    const run = spec();
    const { pid } = await begin(run);
    const asked = performance.now();
    supervisor.stop(run.runId, 'cancelled');
    const outcome = await settled(run.runId);
    expect(performance.now() - asked).toBeGreaterThanOrEqual(600);
    expect(outcome).toMatchObject({
      status: 'cancelled',
      cause: 'cancelled',
      finalRung: 'kill',
      exit: { code: null, signal: 'SIGKILL' },
    });
    expect(() => process.kill(-pid, 0)).toThrow('ESRCH');
    const signals = lines
      .filter((line) => line.event === 'subagent.signal')
      .map((line) => line.fields.signal);
    expect(signals).toEqual(['SIGTERM', 'SIGKILL']);
  });

  it('H02: escalation goes on for a grandchild that outlives its leader, and an empty group is not signalled', async () => {
    const { begin, settled, supervisor, lines } = rigged(fixture('deaf-grandchild'));
    const run = spec();
    const { pid } = await begin(run);
    const report = await eventually('the grandchild', () =>
      lines.find((line) => line.event === 'loop.start'),
    );
    const grandchild = Number(report.fields.grandchild);
    expect(isRunning(grandchild)).toBe(true);
    supervisor.stop(run.runId, 'cancelled');
    const outcome = await settled(run.runId);
    expect(outcome).toMatchObject({ finalRung: 'kill', exit: { code: 0, signal: null } });
    expect(isRunning(grandchild)).toBe(false);
    const signals = lines.filter((line) => line.event === 'subagent.signal').length;
    supervisor.stop(run.runId, 'cancelled');
    expect(lines.filter((line) => line.event === 'subagent.signal')).toHaveLength(signals);
    expect(isRunning(pid)).toBe(false);
  });

  it.each([
    ['in its group', 'group', 'kill'],
    ['in a session of its own', 'setsid', 'none'],
  ])(
    'H03: a grandchild %s that holds stdout delays neither the result nor the slot',
    async (_where, how, rung) => {
      const { run, lines, supervisor } = rigged(fixture('holds-stdout'));
      const outcome = await run(spec({ instruction: how }));
      expect(outcome).toMatchObject({
        status: 'completed',
        cause: null,
        result: 'kept',
        finalRung: rung,
        exit: { code: 0 },
      });
      expect(supervisor.active).toBe(0);
      // It would have slept for ten minutes.
      expect(outcome.durationMs).toBeLessThan(60_000);
      const grandchild = Number(lines.find((line) => line.event === 'loop.start')?.fields.grandchild);
      expect(grandchild).toBeGreaterThan(0);
      if (how === 'group') expect(isRunning(grandchild)).toBe(false);
      else process.kill(grandchild, 'SIGKILL');
    },
  );

  it('H04: a child that is killed in the middle of a run has crashed, with the signal on record', async () => {
    const { begin, settled } = rigged(fixture('goes-silent'));
    const run = spec();
    const { pid } = await begin(run);
    process.kill(pid, 'SIGKILL');
    expect(await settled(run.runId)).toMatchObject({
      status: 'crashed',
      cause: 'vanished',
      exit: { code: null, signal: 'SIGKILL' },
      finalRung: 'none',
      error: { type: 'ChildVanished', message: 'the child ended without a result (signal SIGKILL)' },
    });
  });

  it('H04: exit code 0 without a result is a crash all the same', async () => {
    const { run } = rigged(fixture('vanishes'));
    expect(await run(spec())).toMatchObject({
      status: 'crashed',
      cause: 'vanished',
      exit: { code: 0, signal: null },
    });
  });

  it.each(['polite', 'stubborn'])(
    'H06: a %s child that is stopped before it is ready leaves no survivor',
    async (how) => {
      const { supervisor, settled } = rigged(fixture('never-ready', how));
      const run = spec();
      supervisor.launch(run);
      expect(survivors()).not.toEqual([]);
      const left = await supervisor.drain(5_000);
      expect(left).toEqual([]);
      expect(await settled(run.runId)).toMatchObject({ status: 'cancelled', cause: 'drain', exit: null });
      expect(survivors()).toEqual([]);
    },
  );

  it('H06: nothing is started once a drain has begun', async () => {
    const { supervisor, run, messages } = rigged(fixture('obliging'));
    supervisor.setWarmTarget(3);
    await supervisor.drain(5_000);
    const outcome = await run(spec());
    expect(outcome).toMatchObject({ status: 'cancelled', cause: 'drain', exit: null });
    expect(messages.filter((message) => message.type === 'run.started')).toEqual([]);
    expect(survivors()).toEqual([]);
  });

  it('a second, shorter stop tightens the first, and the first cause stands', async () => {
    const { begin, settled, supervisor } = rigged(fixture('ignores-sigterm'), {
      timings: { cancelGraceMs: 60_000, termGraceMs: 60_000 },
    });
    const run = spec();
    await begin(run);
    supervisor.stop(run.runId, 'lease_expired');
    supervisor.stop(run.runId, 'lease_lost', 0);
    expect(await settled(run.runId)).toMatchObject({ cause: 'lease_expired', finalRung: 'kill' });
  });

  it('a bounded stop shrinks the graces to fit', async () => {
    const { begin, settled, supervisor } = rigged(fixture('ignores-sigterm'), {
      timings: { cancelGraceMs: 60_000, termGraceMs: 60_000 },
    });
    const run = spec();
    await begin(run);
    supervisor.stop(run.runId, 'lease_expired', 500);
    expect(await settled(run.runId)).toMatchObject({ cause: 'lease_expired', finalRung: 'kill' });
  });

  it('a result sent after the stop completes the report and changes no verdict', async () => {
    const { begin, settled, supervisor } = rigged(fixture('result-after-cancel'), {
      timings: { cancelGraceMs: 30_000 },
    });
    const run = spec();
    await begin(run);
    supervisor.stop(run.runId, 'cancelled');
    expect(await settled(run.runId)).toMatchObject({
      status: 'cancelled',
      cause: 'cancelled',
      result: 'done all the same',
      finalRung: 'cancel',
    });
  });

  it('a child that answers and does not leave is ended after its grace, result kept', async () => {
    const { run } = rigged(fixture('lingers'), { timings: { exitGraceMs: 100 } });
    expect(await run(spec())).toMatchObject({
      status: 'completed',
      cause: null,
      result: 'answered',
      finalRung: 'term',
    });
  });

  it('a drain takes along what has left the group of a child', async () => {
    const { begin, lines, supervisor, settled } = rigged(fixture('keeps-grandchildren'));
    const run = spec();
    await begin(run);
    const report = await eventually('the grandchildren', () =>
      lines.find((line) => line.event === 'loop.start'),
    );
    const pids = [report.fields.ordinary, report.fields.escaped].map(Number);
    expect(pids.map(isRunning)).toEqual([true, true]);
    expect(await supervisor.drain(3_000)).toEqual([]);
    expect(await settled(run.runId)).toMatchObject({ cause: 'drain' });
    for (const pid of pids) await eventually(`the end of ${pid}`, () => !isRunning(pid));
    expect(lines.some((line) => line.event === 'subagent.orphan' && line.fields.orphan_pid === pids[1])).toBe(
      true,
    );
  });

  it('a drain lets a turn finish, ladders the rest, and stays within its budget', async () => {
    const polite = rigged(fixture('obliging'));
    const deaf = rigged(fixture('ignores-sigterm'));
    const [one, other] = [spec({ instruction: 'wait' }), spec()];
    await Promise.all([polite.begin(one), deaf.begin(other)]);
    const began = performance.now();
    const [left, stubborn] = await Promise.all([
      polite.supervisor.drain(20_000),
      deaf.supervisor.drain(3_000),
    ]);
    expect(left).toEqual([]);
    expect(stubborn).toEqual([]);
    expect(performance.now() - began).toBeLessThan(15_000);
    expect(await polite.settled(one.runId)).toMatchObject({
      status: 'completed',
      result: 'wound down',
      cause: null,
    });
    expect(await deaf.settled(other.runId)).toMatchObject({
      status: 'cancelled',
      cause: 'drain',
      finalRung: 'kill',
    });
  });
});
