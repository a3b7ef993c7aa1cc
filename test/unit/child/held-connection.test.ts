import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { HeldConnection } from '../../../child/model/held-connection.ts';

type Connector = ConstructorParameters<typeof HeldConnection>[1];
type Opened = Parameters<Parameters<Connector>[1]>;

let sockets: PassThrough[] = [];
let targets: unknown[] = [];
let refuse = false;
let said: boolean[] = [];

const connect: Connector = (target, callback) => {
  targets.push(target);
  const socket = new PassThrough();
  sockets.push(socket);
  const opened = (refuse ? [new Error('refused'), null] : [null, socket]) as unknown as Opened;
  callback(...opened);
};

const hold = (origin = 'https://model.test'): HeldConnection =>
  new HeldConnection(
    origin,
    connect,
    (open) => said.push(open),
    () => Date.now(),
  );

/** Lets the streams' own callbacks run. */
async function lose(socket: PassThrough | undefined): Promise<void> {
  socket?.destroy();
  await vi.advanceTimersByTimeAsync(0);
}

beforeEach(() => {
  vi.useFakeTimers();
  sockets = [];
  targets = [];
  said = [];
  refuse = false;
});
afterEach(() => {
  vi.useRealTimers();
});

describe('a held connection', () => {
  it('is made again after 1 s, 2 s, 4 s … up to a minute while the endpoint refuses', async () => {
    refuse = true;
    const held = hold();
    const made: number[] = [];
    for (const pause of [1, 2, 4, 8, 16, 32, 60, 60]) {
      await vi.advanceTimersByTimeAsync(pause * 1_000 - 1);
      const before = targets.length;
      await vi.advanceTimersByTimeAsync(1);
      made.push(targets.length - before);
    }
    expect(made).toEqual([1, 1, 1, 1, 1, 1, 1, 1]);
    expect(said).toEqual([]);
    held.close();
    expect(vi.getTimerCount()).toBe(0);
  });

  it('is made again after 1 s whenever it had lasted, however often it is lost', async () => {
    const held = hold();
    for (let loss = 1; loss <= 3; loss++) {
      await vi.advanceTimersByTimeAsync(20_000);
      await lose(sockets.at(-1));
      await vi.advanceTimersByTimeAsync(1_000);
      expect(sockets).toHaveLength(loss + 1);
    }
    expect(said).toEqual([true, false, true, false, true, false, true]);
    held.close();
  });

  it('is replaced every half minute, since what lies between may forget one that is silent', async () => {
    const held = hold();
    await vi.advanceTimersByTimeAsync(29_999);
    expect(sockets).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(sockets).toHaveLength(2);
    expect([sockets[0]?.destroyed, sockets[1]?.destroyed]).toEqual([true, false]);
    expect(said).toEqual([true, false, true]);
    expect(held.take()).toBe(sockets[1]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('is not handed over when it has just broken', () => {
    const held = hold();
    sockets[0]?.destroy();
    expect(held.take()).toBeNull();
  });

  it('is given up when the endpoint speaks unasked', async () => {
    const held = hold();
    sockets[0]?.write('HTTP/1.1 408 Request Timeout\r\n\r\n');
    await vi.advanceTimersByTimeAsync(0);
    expect(said).toEqual([true, false]);
    expect(held.take()).toBeNull();
  });

  it('is handed over once, without what was listening on it', () => {
    const held = hold('http://[::1]:8080');
    expect(targets).toEqual([{ host: '[::1]:8080', hostname: '::1', protocol: 'http:', port: '8080' }]);
    const socket = held.take();
    expect(socket).toBe(sockets[0]);
    expect(['data', 'close', 'error'].map((event) => socket?.listenerCount(event))).toEqual([0, 0, 0]);
    expect(held.take()).toBeNull();
    expect(vi.getTimerCount()).toBe(0);
  });
});
