import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { SignalDesk } from '../../../supervisor/cli/signals.ts';

describe('the desk of signals', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  function desk(): { desk: SignalDesk; defaults: string[] } {
    const defaults: string[] = [];
    return { desk: new SignalDesk((signal) => defaults.push(signal), 1_000), defaults };
  }

  it('passes every signal to every listener until it stops listening', () => {
    const { desk: signals, defaults } = desk();
    const heard: string[] = [];
    const stop = signals.subscribe((signal) => heard.push(`a ${signal}`));
    signals.subscribe((signal) => heard.push(`b ${signal}`));
    signals.arrived('SIGTERM');
    stop();
    signals.arrived('SIGINT');
    expect(heard).toEqual(['a SIGTERM', 'b SIGTERM', 'b SIGINT']);
    expect(defaults).toEqual([]);
  });

  it('holds a signal that comes before anybody listens', async () => {
    const { desk: signals, defaults } = desk();
    signals.arrived('SIGTERM');
    const heard: string[] = [];
    signals.subscribe((signal) => heard.push(signal));
    await vi.advanceTimersByTimeAsync(10_000);
    expect(heard).toEqual(['SIGTERM']);
    expect(defaults).toEqual([]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('takes the default action when nobody listens in time', async () => {
    const { desk: signals, defaults } = desk();
    signals.arrived('SIGHUP');
    await vi.advanceTimersByTimeAsync(999);
    expect(defaults).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(defaults).toEqual(['SIGHUP']);
  });

  it('takes the default action at once for a second signal nobody listens to', () => {
    const { desk: signals, defaults } = desk();
    signals.arrived('SIGTERM');
    signals.arrived('SIGINT');
    expect(defaults).toEqual(['SIGINT']);
  });

  it('lets a request to end take the place of one to reload, and never the other way round', async () => {
    const { desk: signals, defaults } = desk();
    signals.arrived('SIGHUP');
    expect(signals.toldToEnd).toBe(false);
    signals.arrived('SIGTERM');
    expect(signals.toldToEnd).toBe(true);
    signals.arrived('SIGHUP');
    const heard: string[] = [];
    signals.subscribe((signal) => heard.push(signal));
    await vi.advanceTimersByTimeAsync(10_000);
    expect(heard).toEqual(['SIGTERM']);
    expect(defaults).toEqual([]);
    expect(signals.toldToEnd).toBe(false);
  });

  it('delivers nothing to a listener that has already gone', async () => {
    const { desk: signals } = desk();
    signals.arrived('SIGTERM');
    const heard: string[] = [];
    signals.subscribe((signal) => heard.push(signal))();
    await vi.advanceTimersByTimeAsync(0);
    expect(heard).toEqual([]);
  });
});
