import { cpSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { AGENTD } from '../../../scripts/fleet/agentd-process.ts';
import { eventually } from '../../helpers/eventually.ts';
import { FailingFleet, SHORT_TTL_MS } from './failing-fleet.ts';

const MODULES = fileURLToPath(new URL('../../../node_modules', import.meta.url));

/** A build of its own, whose child program can be broken and mended while it is in use. */
class Installation {
  readonly root = mkdtempSync(join(tmpdir(), 'agentd-installation-'));
  readonly program = join(this.root, 'dist', 'agentd.js');

  constructor() {
    cpSync(dirname(AGENTD), join(this.root, 'dist'), { recursive: true });
    symlinkSync(MODULES, join(this.root, 'node_modules'));
  }

  /** From here on a child ends before it is ready. */
  break(): void {
    writeFileSync(
      join(this.root, 'dist', 'child.js'),
      "process.stderr.write('out of order\\n');\nprocess.exit(3);\n",
    );
  }

  mend(): void {
    cpSync(join(dirname(AGENTD), 'child.js'), join(this.root, 'dist', 'child.js'));
  }

  remove(): void {
    rmSync(this.root, { recursive: true, force: true });
  }
}

let installation: Installation;
let fleet: FailingFleet | null = null;

beforeEach(() => {
  installation = new Installation();
});

afterEach(async () => {
  await fleet?.close();
  fleet = null;
  installation.remove();
});

async function readyz(running: FailingFleet, index: number): Promise<{ status: number; reasons: string[] }> {
  const answer = await fetch(new URL('/readyz', running.test.fleet.metricsUrls[index]));
  const { reasons } = (await answer.json()) as { reasons: string[] };
  return { status: answer.status, reasons };
}

const unable = (running: FailingFleet, index: number): Promise<unknown> =>
  eventually('the reason cannot_spawn', async () => {
    const { status, reasons } = await readyz(running, index);
    return status === 503 && reasons.includes('cannot_spawn');
  });

describe('a replica that can start no child', () => {
  it('says so, claims nothing while that lasts, and does everything once when a probe has come up', async () => {
    installation.break();
    const running = await FailingFleet.start({ supervisors: [[]], programs: [installation.program] });
    fleet = running;
    await unable(running, 0);
    expect(await running.metric(0, 'agent_ready')).toBe(0);
    const items = await running.drop('waits-1', 'waits-2', 'waits-3', 'waits-4', 'waits-5');
    await eventually(
      'a backlog',
      async () => (await running.metric(0, 'agent_pending_events')) === items.length,
    );
    await eventually(
      'the backlog to have waited through a probe that failed',
      async () => (await running.metric(0, 'agent_reaction_lag_ms')) > 12_000,
    );
    // No meltdown: nobody claims, releases or starts anything.
    expect(running.lines('claim.offered')).toEqual([]);
    expect(running.lines('subagent.spawn')).toEqual([]);
    expect(await running.ask('work.stats', {})).toMatchObject({ claimed: 0, deadletter: 0 });
    expect((await readyz(running, 0)).reasons).toEqual(['cannot_spawn']);
    const trips = running.lines('limit.exceeded').map(({ line }) => String(line.msg));
    expect(trips).toHaveLength(1);
    expect(trips[0]).toContain('no child can be started');
    expect(trips[0]).toContain('out of order');

    installation.mend();
    await running.acked(items, 120_000);
    expect(await running.effects(items)).toEqual(items.map(() => 1));
    for (const item of items) expect(await running.record(item)).toMatchObject({ state: 'done', attempt: 1 });
    expect(await readyz(running, 0)).toEqual({ status: 200, reasons: [] });
  }, 240_000);

  it('that loses the ability under load leaves its items to another, and spends no attempt of any', async () => {
    const running = await FailingFleet.start({
      supervisors: [[], ['--warm-children', '2']],
      programs: [installation.program, undefined],
      // What was given back is nobody's until the other looks again, after about a ttl.
      ttlMs: SHORT_TTL_MS,
    });
    fleet = running;
    await running.acked(await running.drop('before-the-fault'));
    installation.break();
    const items = await running.drop(...Array.from({ length: 30 }, (_, index) => `steady-${index}`));
    await running.acked(items, 120_000);
    await unable(running, 0);
    expect(await running.effects(items)).toEqual(items.map(() => 1));
    expect(await running.ask('work.stats', {})).toMatchObject({ claimed: 0, deadletter: 0 });
    // What it had claimed when it found out is all it ever gave back.
    const returned = running.lines('claim.released').filter(({ supervisor }) => supervisor === 0);
    expect(returned.length).toBeLessThanOrEqual(8);
    for (const { line } of returned) expect(String(line.reason)).toMatch(/^not_started/);
  }, 240_000);
});
