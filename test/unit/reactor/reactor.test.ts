import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { Reactor } from '../../../supervisor/reactor/reactor.ts';

describe('reactor', () => {
  it('handles events in order, one to its end before the next, also those posted meanwhile', async () => {
    const seen: string[] = [];
    let depth = 0;
    const reactor: Reactor<string> = new Reactor(
      (event) => {
        expect(++depth).toBe(1);
        seen.push(event);
        if (event === 'a') reactor.post('c');
        depth--;
      },
      () => seen.push('batch'),
      () => seen.push('beat'),
    );
    reactor.post('a');
    reactor.post('b');
    await turn();
    expect(seen).toEqual(['beat', 'a', 'b', 'c', 'batch']);
  });

  it('lets I/O have its turn during a flood', async () => {
    let handled = 0;
    const reactor = new Reactor<number>(
      () => handled++,
      () => undefined,
      () => undefined,
    );
    for (let index = 0; index < 10_000; index++) reactor.post(index);
    await turn();
    expect(handled).toBeLessThan(10_000);
    while (reactor.depth > 0) await turn();
    expect(handled).toBe(10_000);
  });

  it('goes on after work posted by the end of a batch', async () => {
    const seen: number[] = [];
    let more = 3;
    const reactor: Reactor<number> = new Reactor(
      (event) => {
        seen.push(event);
      },
      () => {
        if (more-- > 0) reactor.post(more);
      },
      () => undefined,
    );
    reactor.post(9);
    while (seen.length < 4) await turn();
    expect(seen).toEqual([9, 2, 1, 0]);
  });
});
