import { afterEach, describe, expect, it } from 'vitest';
import { MAX_FRAME_BYTES } from '../../../protocol/frames.ts';
import { DEFAULT_CHANNEL_LIMITS } from '../../../supervisor/children/channel.ts';
import { eventually } from '../../helpers/eventually.ts';
import { fixture, type Rig, rig, spec } from './harness.ts';

describe('bytes from real children', () => {
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

  it('H18: every awkward character arrives, a byte at a time, after a line of invalid UTF-8', async () => {
    const text = 'line\u2028separator paragraph\u2029 — dash 🚀 "quotes" \\ and\nnewline';
    const { run, lines } = rigged(fixture('invalid-utf8'));
    expect(await run(spec({ instruction: text }))).toMatchObject({ status: 'completed', result: text });
    expect(lines.filter((line) => String(line.fields.msg).includes('not JSON'))).toHaveLength(1);
  });

  it('H19: ten megabytes on stderr do not keep a run from finishing, and the log stays bounded', async () => {
    const { run, lines } = rigged(fixture('floods-stderr'));
    expect(await run(spec())).toMatchObject({ status: 'completed', result: 'after the flood' });
    const relayed = lines.filter((line) => line.fields.stream === 'stderr');
    expect(relayed.length).toBeGreaterThan(10);
    expect(relayed.length).toBeLessThan(2_000);
    expect(lines.some((line) => Number(line.fields.dropped) > 1_000)).toBe(true);
    expect(process.memoryUsage().rss).toBeLessThan(1024 * 1024 * 1024);
  });

  it('H20: endless stdout without a newline fails that child at the cap, and no other', async () => {
    const endless = rigged(fixture('endless-stdout'));
    const other = rigged(fixture('obliging'));
    const failed = endless.run(spec());
    expect(await other.run(spec({ instruction: 'meanwhile' }))).toMatchObject({ status: 'completed' });
    const outcome = await failed;
    expect(outcome).toMatchObject({ status: 'crashed', cause: 'protocol', error: { type: 'ProtocolError' } });
    expect(outcome.error?.message).toMatch(/a line of more than \d+ bytes/);
  });

  it('H20: a frame just under the cap and a small one behind it are both accepted', async () => {
    const { run, lines } = rigged(fixture('big-frame'));
    const outcome = await run(spec({ instruction: String(MAX_FRAME_BYTES) }));
    expect(outcome).toMatchObject({ status: 'completed', result: 'after the big one' });
    const logged = lines.filter((line) => line.event === 'loop.step' || line.event === 'loop.final');
    expect(logged.map((line) => line.event)).toEqual(['loop.step', 'loop.final']);
  });

  it('a frame one byte over the cap fails its child', async () => {
    const { run } = rigged(fixture('big-frame'));
    const outcome = await run(spec({ instruction: String(MAX_FRAME_BYTES + 1) }));
    expect(outcome).toMatchObject({ status: 'crashed', cause: 'protocol' });
  });

  it('H20: a stray banner and some garbage are counted, logged and skipped', async () => {
    const { run, lines } = rigged(fixture('garbage'));
    expect(await run(spec({ instruction: '10' }))).toMatchObject({
      status: 'completed',
      result: 'after the garbage',
    });
    const skipped = lines.filter((line) => line.fields.stream === 'stdout');
    expect(skipped).toHaveLength(11);
    expect(skipped.some((line) => String(line.fields.sample).includes('welcome'))).toBe(true);
  });

  it('garbage without end fails its child', async () => {
    const { run } = rigged(fixture('garbage'));
    const outcome = await run(spec({ instruction: '5000' }));
    expect(outcome).toMatchObject({ status: 'crashed', cause: 'protocol' });
    expect(outcome.error?.message).toBe('more than 100 lines that are no frames');
  });

  it('of two results the first one counts', async () => {
    const { run, lines } = rigged(fixture('second-result'));
    expect(await run(spec())).toMatchObject({ status: 'completed', result: 'first' });
    expect(lines.some((line) => String(line.fields.msg).includes('a second result'))).toBe(true);
  });

  it('a child that floods its log is slowed down by its pipe, and its siblings go on', async () => {
    const flood = rigged(fixture('log-flood'));
    const other = rigged(fixture('obliging'));
    const run = spec();
    await flood.begin(run);
    let longest = 0;
    let last = performance.now();
    const watch = setInterval(() => {
      longest = Math.max(longest, performance.now() - last);
      last = performance.now();
    }, 10);
    for (let i = 0; i < 10; i += 1) {
      expect(await other.run(spec({ instruction: `sibling ${i}` }))).toMatchObject({ status: 'completed' });
    }
    clearInterval(watch);
    expect(longest).toBeLessThan(2_000);
    flood.supervisor.stop(run.runId, 'cancelled');
    expect(await flood.settled(run.runId)).toMatchObject({ cause: 'cancelled' });
    const relayed = flood.lines.filter((line) => line.event === 'loop.step').length;
    expect(relayed).toBeGreaterThan(100);
    expect(relayed).toBeLessThan(20_000);
  });

  it('a child that does not read its stdin is failed before the queue grows', async () => {
    const { begin, settled, supervisor } = rigged(fixture('stops-itself'), {
      channelLimits: { ...DEFAULT_CHANNEL_LIMITS, outboundFrames: 8 },
      timings: { pingMs: 600_000 },
    });
    const run = spec();
    await begin(run);
    // Nothing is queued before the pipe and the socket's own buffer are full.
    await eventually('the queue to overflow', () => {
      for (let i = 0; i < 200; i += 1) supervisor.pause(run.runId);
      return supervisor.inventory().every((one) => one.state !== 'running');
    });
    const outcome = await settled(run.runId);
    expect(outcome).toMatchObject({ status: 'stalled', cause: 'wedged' });
    expect(outcome.error?.message).toContain('does not read its stdin');
  });

  it('a child that closed its stdin can still be stopped', async () => {
    const { begin, settled, supervisor } = rigged(fixture('closes-stdin'));
    const run = spec();
    await begin(run);
    await eventually('the first progress', () =>
      supervisor.inventory().some((one) => one.state === 'running'),
    );
    supervisor.stop(run.runId, 'cancelled');
    expect(await settled(run.runId)).toMatchObject({ status: 'cancelled', cause: 'cancelled' });
  });
});
