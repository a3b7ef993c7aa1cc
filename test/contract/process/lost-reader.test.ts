import { describe, expect, it } from 'vitest';
import { eventually } from '../../helpers/eventually.ts';
import { Binary } from '../support/binary.ts';
import { figureOf } from '../support/exposition.ts';
import { probe, scrape } from '../support/scrape.ts';

/** Losing telemetry never changes what is done (invariant 10). */
describe('a reader of standard error that goes away', () => {
  it('costs lines, which are counted, and nothing else', async () => {
    const supervisor = new Binary([
      ...['supervise', '--interval', '200ms', '--instruction', 'x', '--intelligence', 'script:final'],
      ...['--metrics-addr', '127.0.0.1:0'],
    ]);
    try {
      const url = String((await supervisor.ready()).metrics_url);
      const before = await scrape(url);
      expect(figureOf(before, 'agent_log_lines_dropped_total')).toBe(0);
      supervisor.process.stderr?.destroy();
      const runs = figureOf(before, 'agent_runs_total', { status: 'completed' });
      await eventually(
        'dropped lines',
        async () => figureOf(await scrape(url), 'agent_log_lines_dropped_total') > 0,
      );
      await eventually(
        'further runs',
        async () => figureOf(await scrape(url), 'agent_runs_total', { status: 'completed' }) >= runs + 3,
      );
      expect((await probe(url, '/healthz')).status).toBe(200);
      expect((await probe(url, '/readyz')).status).toBe(200);
    } finally {
      expect(await supervisor.stop()).toEqual({ code: 0, signal: null });
    }
    expect(supervisor.stdout).toBe('');
  });

  it('from the start leaves result and exit code of a one-shot run as they are', async () => {
    const run = new Binary(['run', 'x', '--intelligence', 'script:final:the whole result']);
    run.process.stderr?.destroy();
    expect(await run.ended).toEqual({ code: 0, signal: null });
    expect(run.stdout).toBe('the whole result\n');
  });

  it('like a reader of standard output, which may leave too', async () => {
    const run = new Binary(['run', 'x', '--intelligence', 'script:final']);
    run.process.stdout?.destroy();
    expect(await run.ended).toEqual({ code: 0, signal: null });
  });
});
