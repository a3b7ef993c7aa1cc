import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { type PulledItem, Standby } from '../../../supervisor/routing/standby.ts';
import { ManualClock } from '../../helpers/manual-clock.ts';

function bench(
  over: { next?: (max: number) => readonly PulledItem[] | null; pending?: readonly string[] } = {},
) {
  const clock = new ManualClock();
  const asked: number[] = [];
  const adopted: string[] = [];
  const raced: string[] = [];
  let free = 2;
  const standby = new Standby({
    clock,
    freeSlots: () => free,
    claimNext: async (max) => {
      asked.push(max);
      return over.next === undefined ? [] : over.next(max);
    },
    pending: async () => over.pending ?? [],
    adopt: (item) => adopted.push(item.uri),
    race: (uri) => {
      raced.push(uri);
      return uri !== 'taken';
    },
    pulled: () => undefined,
  });
  return {
    clock,
    asked,
    adopted,
    raced,
    standby,
    setFree: (count: number) => {
      free = count;
    },
  };
}

const item = (uri: string): PulledItem => ({
  uri,
  claimKey: uri,
  grant: { leaseId: uri, expiresInMs: 1, sentAt: 0 },
});

describe('standby', () => {
  it('pulls at start as much as it has room for, and no more than one pull at a time', async () => {
    const b = bench();
    b.standby.pump();
    b.standby.pump();
    expect(b.asked).toEqual([2]);
    await turn();
    b.standby.pump();
    expect(b.asked).toEqual([2]); // nothing was there, and nobody said otherwise
  });

  it('pulls again when told of work, when it got all it asked for, and every five seconds anyway', async () => {
    const b = bench({ next: (max) => Array.from({ length: max }, (_, index) => item(String(index))) });
    b.standby.pump();
    await turn();
    b.standby.pump();
    await turn();
    expect(b.asked).toEqual([2, 2]);
    const quiet = bench();
    quiet.standby.pump();
    await turn();
    quiet.standby.notified();
    quiet.standby.pump();
    await turn();
    quiet.clock.advance(5_000);
    quiet.standby.pump();
    expect(quiet.asked).toEqual([2, 2, 2]);
  });

  it('pulls nothing without a free slot', () => {
    const b = bench();
    b.setFree(0);
    b.standby.pump();
    expect(b.asked).toEqual([]);
    b.setFree(1);
    b.standby.pump();
    expect(b.asked).toEqual([1]);
  });

  it('races for what is pending where the server hands nothing out', async () => {
    const b = bench({ next: () => null, pending: ['taken', 'a', 'b', 'c'] });
    b.standby.pump();
    await turn();
    expect(b.raced).toEqual(['taken', 'a', 'b']);
    expect(b.adopted).toEqual([]);
  });
});
