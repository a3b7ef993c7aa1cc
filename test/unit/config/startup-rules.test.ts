import { describe, expect, it } from 'vitest';
import type { Config } from '../../../supervisor/config/config.ts';
import { ConfigProblems } from '../../../supervisor/config/problems.ts';
import { checkStartup } from '../../../supervisor/config/startup-rules.ts';
import { load, RUNNABLE } from '../../helpers/load-config.ts';

/** What the rules say of a configuration that a build serving everything would have. */
async function said(change: Partial<Config>): Promise<string> {
  const { config } = await load({ flags: RUNNABLE });
  const problems = new ConfigProblems();
  const context = {
    env: {},
    cwd: '/',
    purpose: 'run' as const,
    problems,
    warnings: [],
    where: () => null,
    rank: () => -1,
    written: (path: readonly (string | number)[]) => path,
  };
  await checkStartup({ ...config, ...change }, context);
  try {
    problems.throwIfAny();
    return '';
  } catch (error) {
    return String(error);
  }
}

const serve = (url: string): Partial<Config> => ({
  serve: { url, certFile: null, keyFile: null, clientCaFile: null, bearer: null },
});
const standby = { assignFrom: { server: 's', uri: 'a://b' }, ttlMs: 30_000, renewFraction: 0.33 };

describe('the rules over several keys', () => {
  it('let standby be reactive only, where it needs no route', async () => {
    expect(await said({ standby, mode: 'once' })).toContain('standby is for reactive mode');
    expect(await said({ standby, mode: 'reactive' })).toBe('');
  });

  it('warn of a traceparent that is none, and take the rest of the configuration', async () => {
    const zeros = `00-${'0'.repeat(32)}-${'1'.repeat(16)}-01`;
    const { warnings } = await load({ flags: { ...RUNNABLE, '--traceparent': zeros } });
    expect(warnings).toEqual([expect.stringContaining('traceparent')]);
  });

  it('let the management surface listen on http:// on loopback only', async () => {
    expect(await said(serve('http://0.0.0.0:7000'))).toContain('http:// is only allowed on loopback');
    expect(await said(serve('nowhere'))).toContain('not a URL');
    expect(await said(serve('http://127.0.0.1:0'))).toBe('');
  });
});
