import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DEFAULT_POLICY, type Ledger, type LedgerPolicy } from '../../../supervisor/coordination/ledger.ts';
import { openLedgerClock } from '../../../supervisor/coordination/sqlite/ledger-clock.ts';
import { SqliteLedger } from '../../../supervisor/coordination/sqlite/sqlite-ledger.ts';
import type { LedgerFixture } from '../../helpers/ledger-conformance/harness.ts';
import { ledgerConformance } from '../../helpers/ledger-conformance.ts';

async function openFixture(policy: LedgerPolicy): Promise<LedgerFixture> {
  const folder = mkdtempSync(join(tmpdir(), 'agentd-ledger-'));
  const opened: Ledger[] = [];
  let now = 1_800_000_000_000;
  const open = async (): Promise<Ledger> => {
    const path = join(folder, 'ledger.db');
    const ledger = await SqliteLedger.open({ path, policy, clock: { now: () => now } });
    opened.push(ledger);
    return ledger;
  };
  return {
    ledger: await open(),
    again: open,
    advance: async (ms) => {
      now += ms;
    },
    dispose: async () => {
      for (const ledger of opened) await ledger.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

ledgerConformance('SQLite', openFixture);

describe('the SQLite ledger file', () => {
  let folder: string;
  let path: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'agentd-ledger-'));
    path = join(folder, 'ledger.db');
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));
  const open = (): Promise<SqliteLedger> => SqliteLedger.open({ path, policy: DEFAULT_POLICY });
  const request = (key: string) => ({ key, item: key, holder: 'h', ttlMs: 60_000 });

  it('is in WAL mode and synchronises fully', async () => {
    const ledger = await open();
    await ledger.claim(request('k'));
    const other = new Sqlite(path);
    expect(other.pragma('journal_mode', { simple: true })).toBe('wal');
    other.close();
    await ledger.close();
  });

  it('refuses a schema version it does not know, by name, and leaves the file alone', async () => {
    await (await open()).close();
    const other = new Sqlite(path);
    other.exec("UPDATE agentd_schema SET version = 99 WHERE component = 'ledger'");
    other.close();
    await expect(open()).rejects.toMatchObject({
      code: 'LEDGER_SCHEMA_UNKNOWN',
      exitCode: 2,
      message: expect.stringContaining('version 99'),
    });
    const after = new Sqlite(path, { readonly: true });
    expect(after.prepare('SELECT version FROM agentd_schema').pluck().get()).toBe(99);
    after.close();
  });

  it('refuses a file that is no database, a folder and a path that does not exist', async () => {
    writeFileSync(
      path,
      'this is not a database, only some text that is long enough to be read as a header'.repeat(20),
    );
    await expect(open()).rejects.toMatchObject({ code: 'LEDGER_UNAVAILABLE', exitCode: 2 });
    for (const bad of [folder, join(folder, 'absent', 'ledger.db')]) {
      await expect(SqliteLedger.open({ path: bad, policy: DEFAULT_POLICY })).rejects.toMatchObject({
        code: 'LEDGER_UNAVAILABLE',
        message: expect.stringContaining(bad),
      });
    }
  });

  it('answers only after the commit, so another connection sees what was told', async () => {
    const ledger = await open();
    const other = new Sqlite(path, { readonly: true });
    const state = other.prepare('SELECT state FROM work_item WHERE claim_key = ?').pluck();
    await Promise.all(
      Array.from({ length: 50 }, async (_, index) => {
        const answer = await ledger.claim(request(`k${index}`));
        expect(answer.granted).toBe(true);
        expect(state.get(`k${index}`)).toBe('leased');
      }),
    );
    other.close();
    await ledger.close();
  });

  it('shares a commit between the requests of one turn', async () => {
    const ledger = await open();
    const other = new Sqlite(path, { readonly: true });
    const version = (): number => Number(other.pragma('data_version', { simple: true }));
    const commits = new Set<number>([version()]);
    const requests = Array.from({ length: 200 }, (_, index) =>
      ledger.claim(request(`k${index}`)).then(() => commits.add(version())),
    );
    await Promise.all(requests);
    expect(commits.size).toBe(2);
    other.close();
    await ledger.close();
  });

  it('rolls a failed batch back and answers the good requests of it', async () => {
    const ledger = await open();
    const bad = { ...request('bad'), ttlMs: Number.NaN, holder: undefined as unknown as string };
    const [good, failed, also] = await Promise.allSettled([
      ledger.claim(request('good')),
      ledger.claim({ ...bad, item: Symbol('no text') as unknown as string }),
      ledger.claim(request('also')),
    ]);
    expect(failed.status).toBe('rejected');
    expect(good).toMatchObject({ status: 'fulfilled', value: { granted: true } });
    expect(also).toMatchObject({ status: 'fulfilled', value: { granted: true } });
    expect(await ledger.find('bad')).toBeNull();
    expect(await ledger.stats()).toMatchObject({ claimed: 2 });
    await ledger.close();
  });

  it('gives every process of one boot the same time, and survives a step of the wall clock', () => {
    const db = new Sqlite(':memory:');
    db.exec('CREATE TABLE work_clock (boot TEXT NOT NULL, offset_ms INTEGER NOT NULL)');
    const first = openLedgerClock(db, 'boot-1');
    expect(Math.abs(first.now() - Date.now())).toBeLessThan(5_000);
    db.exec('UPDATE work_clock SET offset_ms = offset_ms + 3600000');
    const second = openLedgerClock(db, 'boot-1');
    expect(second.now() - first.now()).toBeGreaterThan(3_590_000);
    const rebooted = openLedgerClock(db, 'boot-2');
    expect(Math.abs(rebooted.now() - Date.now())).toBeLessThan(5_000);
    db.close();
  });

  it('tells its listeners when another process made items claimable', async () => {
    const [one, two] = [await open(), await open()];
    await one.tend();
    const told = new Promise<void>((resolve) => one.onPending(resolve));
    await two.submit({
      key: 'k',
      item: 'k',
      kind: 'default',
      tenant: 'default',
      priority: 'normal',
      maxAttempts: null,
      delayMs: 0,
      dependsOn: [],
    });
    await one.tend();
    await told;
    await one.close();
    await two.close();
  });
});
