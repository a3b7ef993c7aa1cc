import { afterEach, describe, expect, it } from 'vitest';
import type { BrokeredCall } from '../../../supervisor/children/run.ts';
import { eventually } from '../../helpers/eventually.ts';
import { fixture, LIMITS, type Rig, rig, spec, TREE_LIMITS, tool } from './harness.ts';

describe('liveness of real children', () => {
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

  it('H17: a child that answers pings and does nothing is caught by the no-progress detector', async () => {
    const { run, lines, metrics } = rigged(fixture('goes-silent'), {
      timings: { pingMs: 50, noProgressMs: 1_000 },
    });
    const outcome = await run(spec());
    expect(outcome).toMatchObject({ status: 'stalled', cause: 'no_progress', error: { type: 'NoProgress' } });
    const stuck = lines.find((line) => line.event === 'subagent.stuck');
    expect(stuck?.fields).toMatchObject({
      cause: 'no_progress',
      process_state: expect.stringMatching(/^[SR]$/),
    });
    expect(metrics.counted('agent_subagent_stuck_kills_total', { signal: 'term' })).toBe(1);
  });

  it('H17: a child in a tool call ten times as long, which keeps reporting progress, is left alone', async () => {
    const calls: BrokeredCall[] = [];
    const { run } = rigged(fixture('long-tool-call'), {
      timings: { pingMs: 100, noProgressMs: 300 },
      callTool: async (call) => {
        calls.push(call);
        for (let i = 0; i < 30; i += 1) {
          await new Promise((resolve) => setTimeout(resolve, 100));
          call.progress(`part ${i}`);
        }
        return { text: 'worked', is_error: false };
      },
    });
    const scoped = spec({ tools: [tool('slow', 'work')], limits: { ...LIMITS, tool_timeout_ms: 10_000 } });
    const outcome = await run(scoped);
    expect(outcome).toMatchObject({ status: 'completed', result: 'worked', cause: null });
    expect(outcome.durationMs).toBeGreaterThan(10 * 290);
    expect(calls[0]).toMatchObject({ runId: scoped.runId, agentPath: outcome.agentPath, timeoutMs: 10_000 });
  });

  it('a child that no longer answers pings is wedged, and is not asked first', async () => {
    const { run, lines } = rigged(fixture('stops-itself'), {
      timings: { pingMs: 100, cancelGraceMs: 60_000 },
    });
    expect(await run(spec())).toMatchObject({
      status: 'stalled',
      cause: 'wedged',
      error: { type: 'Wedged' },
    });
    const stuck = lines.find((line) => line.event === 'subagent.stuck');
    expect(stuck?.fields).toMatchObject({ cause: 'wedged', process_state: 'T' });
  });

  it('the deadline of a run is enforced when the child does not enforce it itself', async () => {
    const { run, metrics } = rigged(fixture('goes-silent'), { timings: { deadlineSlackMs: 100 } });
    const outcome = await run(spec({ limits: { ...LIMITS, deadline_ms: 200 } }));
    expect(outcome).toMatchObject({ status: 'deadline', cause: 'deadline' });
    expect(metrics.counted('agent_limit_exceeded_total', { limit: 'deadline' })).toBe(1);
  });

  it('H26: a deadline of 30 days does not fire at once', async () => {
    const { run } = rigged(fixture('obliging'));
    const limits = { ...LIMITS, deadline_ms: 30 * 24 * 3_600_000 };
    expect(await run(spec({ limits, instruction: 'patience' }))).toMatchObject({ status: 'completed' });
  });

  it('a child that is not ready in time is ended, and its run has crashed', async () => {
    const { run } = rigged(fixture('never-ready'), { timings: { readyMs: 300, firstReadyMs: 300 } });
    const outcome = await run(spec());
    expect(outcome).toMatchObject({ status: 'crashed', cause: 'not_ready', finalRung: 'term' });
    expect(outcome.error?.message).toMatch(/not ready within \d+ ms/);
  });

  it('a child that dies before it is ready says with what words', async () => {
    const { run } = rigged(fixture('exits-early', '3'));
    expect(await run(spec())).toMatchObject({
      status: 'crashed',
      cause: 'not_ready',
      exit: { code: 3, signal: null },
      error: {
        message:
          'the child ended before it was ready (exit code 3); its last words: cannot go on: no such luck',
      },
    });
  });

  it('a program that does not exist fails its run alone', async () => {
    const { run, supervisor } = rigged(['/no/such/program']);
    const outcome = await run(spec());
    expect(outcome).toMatchObject({ status: 'crashed', cause: 'spawn_failed', exit: null });
    expect(outcome.error?.message).toContain('cannot start /no/such/program');
    expect(supervisor.active).toBe(0);
    expect(await run(spec())).toMatchObject({ cause: 'spawn_failed' });
  });

  it('a child over its memory cap is ended alone', async () => {
    const { run, lines, metrics } = rigged(fixture('grows'), {
      limits: { ...TREE_LIMITS, childMemoryMaxBytes: 160 * 1024 * 1024 },
      timings: { usageMs: 100 },
    });
    expect(await run(spec())).toMatchObject({ status: 'crashed', cause: 'memory' });
    expect(metrics.counted('agent_limit_exceeded_total', { limit: 'memory' })).toBe(1);
    const stuck = lines.find((line) => line.event === 'subagent.stuck');
    expect(Number(stuck?.fields.rss_bytes)).toBeGreaterThan(160 * 1024 * 1024);
  });

  it('pausing waits for the child to say so, and a paused child is not taken for stuck', async () => {
    const { begin, settled, supervisor } = rigged(fixture('pauses'), {
      timings: { noProgressMs: 1_500, pingMs: 100 },
    });
    const run = spec();
    await begin(run);
    const state = () => supervisor.inventory().find((one) => one.runId === run.runId)?.state;
    supervisor.pause(null);
    await eventually('the pause', () => state() === 'paused');
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    expect(state()).toBe('paused');
    supervisor.resume(run.runId);
    await eventually('the resumption', () => state() === 'running');
    await supervisor.drain(20_000);
    expect(await settled(run.runId)).toMatchObject({ status: 'completed', result: 'wound down' });
  });
});
