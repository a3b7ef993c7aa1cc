import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { describeEnd, isOverdue } from '../../../supervisor/children/child-end.ts';
import { planDrain } from '../../../supervisor/children/drain-plan.ts';
import { agentEnvironment, childEnvironment } from '../../../supervisor/children/environment.ts';
import { DEFAULT_LADDER_TIMINGS } from '../../../supervisor/children/kill-ladder.ts';
import { LineSplitter } from '../../../supervisor/children/line-splitter.ts';
import { planSpawns } from '../../../supervisor/children/pool-plan.ts';
import { identify, isRecycled, isSameProcess, readStat } from '../../../supervisor/children/proc.ts';
import {
  isOwn,
  parseSupervisionId,
  supervisionId,
  supervisorIsGone,
} from '../../../supervisor/children/supervision-id.ts';

describe('the plan of a drain', () => {
  it('keeps the configured graces where they fit', () => {
    expect(planDrain(25_000, DEFAULT_LADDER_TIMINGS)).toEqual({
      cancelAt: 17_000,
      termAt: 22_000,
      killAt: 24_000,
      reportAt: 25_000,
    });
  });

  it('puts every rung in order and inside the budget, however small', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 600_000 }), (budget) => {
        const { cancelAt, termAt, killAt, reportAt } = planDrain(budget, DEFAULT_LADDER_TIMINGS);
        expect([0, cancelAt, termAt, killAt, reportAt, budget]).toEqual(
          [0, cancelAt, termAt, killAt, reportAt, budget].toSorted((a, b) => a - b),
        );
        if (budget > 0) expect(killAt).toBeLessThan(reportAt);
      }),
    );
  });
});

describe('the plan of starts', () => {
  const view = {
    waiting: fc.nat(20),
    ready: fc.nat(20),
    startingForRuns: fc.nat(6),
    startingWarm: fc.nat(6),
    target: fc.nat(20),
    maxStarting: fc.integer({ min: 1, max: 8 }),
    slotLeft: fc.nat(4),
  };

  it('never crowds, serves runs first, and never loses sight of what is left to do', () => {
    fc.assert(
      fc.property(fc.record(view), (seen) => {
        const plan = planSpawns(seen);
        expect(plan.forRuns + plan.warm).toBeLessThanOrEqual(seen.slotLeft);
        const starting = seen.startingForRuns + seen.startingWarm;
        expect(plan.forRuns + plan.warm).toBeLessThanOrEqual(Math.max(0, seen.maxStarting - starting));
        const unserved = seen.waiting - seen.startingForRuns - plan.forRuns;
        if (unserved > 0) expect(plan.warm).toBe(0);
        const idle = plan.forRuns + plan.warm === 0 && !plan.later && starting === 0;
        if (idle) expect(Math.max(seen.waiting, seen.target - seen.ready)).toBeLessThanOrEqual(0);
      }),
    );
  });
});

describe('lines of free text', () => {
  it('are cut at the cap in bytes, whatever the chunks', () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ maxLength: 40, unit: fc.constantFrom('a', 'b', 'ü', ' ') }), { maxLength: 10 }),
        fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1, maxLength: 5 }),
        (texts, sizes) => {
          const seen: string[] = [];
          const splitter = new LineSplitter(16, (line) => seen.push(line));
          const bytes = Buffer.from(texts.map((text) => `${text}\n`).join(''));
          for (let at = 0, i = 0; at < bytes.length; i += 1) {
            const size = sizes[i % sizes.length] ?? 1;
            splitter.write(bytes.subarray(at, at + size));
            at += size;
          }
          splitter.end();
          expect(seen).toEqual(texts.map((text) => Buffer.from(text).subarray(0, 16).toString('utf8')));
        },
      ),
    );
  });

  it('a last line without a newline is handed over at the end', () => {
    const seen: string[] = [];
    const splitter = new LineSplitter(100, (line) => seen.push(line));
    splitter.write(Buffer.from('one\ntwo'));
    expect(seen).toEqual(['one']);
    splitter.end();
    splitter.end();
    expect(seen).toEqual(['one', 'two']);
  });
});

describe('the environment of a child', () => {
  it('holds what is on the list and no secret', () => {
    const env = childEnvironment({
      PATH: '/bin',
      TZ: 'UTC',
      HOME: '',
      AGENT_INTELLIGENCE_TOKEN: 'secret',
      AWS_SECRET_ACCESS_KEY: 'secret',
      NODE_OPTIONS: '--inspect',
      HTTPS_PROXY: 'http://user:secret@proxy:3128',
      NO_PROXY: 'localhost',
    });
    expect(env).toEqual({ PATH: '/bin', TZ: 'UTC', NO_PROXY: 'localhost' });
  });

  it('names further certificate authorities so that Node does not parse them at every start', () => {
    const given = { PATH: '/bin', NODE_EXTRA_CA_CERTS: '/etc/ca.pem' };
    expect(childEnvironment(given)).toEqual(given);
    expect(agentEnvironment(given)).toEqual({ PATH: '/bin', AGENTD_EXTRA_CA_CERTS: '/etc/ca.pem' });
    expect(agentEnvironment({ PATH: '/bin' })).toEqual({ PATH: '/bin' });
  });
});

describe('the identity of a process', () => {
  it('is pid and start time, so that a recycled pid is told apart', () => {
    const self = identify(process.pid);
    expect(self.startTime).toMatch(/^\d+$/);
    expect(isSameProcess(self)).toBe(true);
    expect(isRecycled(self)).toBe(false);
    const other = { pid: process.pid, startTime: '1' };
    expect(isSameProcess(other)).toBe(false);
    expect(isRecycled(other)).toBe(true);
    expect(isSameProcess({ pid: 2 ** 22 + 1, startTime: '1' })).toBe(false);
    expect(readStat(process.pid)?.parent).toBe(process.ppid);
  });

  it('a marker names its supervisor, and only a dead one of our own namespace is dead', () => {
    const id = parseSupervisionId(supervisionId(7, 'an instance.with.dots'));
    if (id === null) throw new Error('not parsed');
    expect(id).toMatchObject({
      serial: 7,
      instance: 'an instance.with.dots',
      supervisor: { pid: process.pid },
    });
    expect(isOwn(id)).toBe(true);
    expect(supervisorIsGone(id)).toBe(false);
    const dead = { ...id, supervisor: { pid: process.pid, startTime: '1' } };
    expect(isOwn(dead)).toBe(false);
    expect(supervisorIsGone(dead)).toBe(true);
    expect(supervisorIsGone({ ...dead, namespace: '1' })).toBe(false);
    expect(parseSupervisionId('anything else')).toBeNull();
  });
});

describe('the words for an end', () => {
  const ended = {
    code: null,
    signal: 'SIGKILL',
    cause: null,
    rung: 'none',
    groupEmpty: true,
    spawnError: null,
  } as const;
  const seen = { ended, cause: null, fault: null, wasReady: true, lastStderr: 'oops', outOfMemory: false };

  it('name what happened', () => {
    expect(describeEnd(seen)).toMatchObject({
      cause: null,
      error: { message: 'the child ended without a result (signal SIGKILL); its last words: oops' },
    });
    expect(describeEnd({ ...seen, outOfMemory: true })).toMatchObject({ cause: 'memory' });
    expect(describeEnd({ ...seen, cause: 'lease_lost' })).toMatchObject({
      cause: 'lease_lost',
      error: { type: 'LeaseLost', message: 'somebody else owns the item now' },
    });
  });

  it('a child is overdue after its time, unless it is the first or is kept from the CPU', () => {
    const timings = { readyMs: 100, firstReadyMs: 500 };
    expect(isOverdue(100, timings, false, null)).toBe(false);
    expect(isOverdue(101, timings, false, null)).toBe(true);
    expect(isOverdue(101, timings, true, null)).toBe(false);
    expect(isOverdue(501, timings, true, null)).toBe(true);
    // This very process is running, or it could not ask.
    expect(isOverdue(101, timings, false, process.pid)).toBe(false);
  });
});
