import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startHttpServer } from '../../../supervisor/surface/http-server.ts';
import { nullLog } from '../../helpers/null-log.ts';
import { runVerb } from '../../helpers/run-verb.ts';

describe('the coordinate verb', () => {
  let folder: string;
  let db: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'agentd-coordinate-'));
    db = join(folder, 'ledger.db');
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it('refuses what it cannot use with a sentence and exit 2', async () => {
    const text = join(folder, 'text.db');
    writeFileSync(text, 'no database at all, but long enough to hold a header. '.repeat(40));
    const newer = join(folder, 'newer.db');
    const made = new Sqlite(newer);
    made.exec('CREATE TABLE agentd_schema (component TEXT PRIMARY KEY, version INTEGER NOT NULL)');
    made.exec("INSERT INTO agentd_schema VALUES ('ledger', 7)");
    made.close();
    const busy = await startHttpServer({ url: 'http://127.0.0.1:0', routes: [], log: nullLog });
    const cases: [string[], RegExp][] = [
      [['--db', text], /ledger .*text\.db cannot be opened: file is not a database/],
      [['--db', newer], /newer\.db has ledger schema version 7; this build knows versions up to \d+/],
      [['--db', join(folder, 'none', 'x.db')], /none.x\.db cannot be opened/],
      [['--db', db, '--listen', new URL(busy.url).origin], /the port is in use/],
      [['--db', db, '--listen', 'http://0.0.0.0:0'], /http:\/\/ is only allowed on loopback/],
      [['--db', db, '--listen', 'https://127.0.0.1:0'], /needs a certificate and key/],
      [['--db', db, '--max-attempts', '0'], /--max-attempts "0" is not a whole number from 1/],
      [['--db', db, '--dedupe-horizon', 'soon'], /--dedupe-horizon "soon" is not a duration/],
      [['--db', db, '--tls-cert', 'x'], /--tls-cert and --tls-key go together/],
      [['--db', db, '--bearer-file', join(folder, 'absent')], /absent cannot be read/],
      [['--db', db, '--tenant-qouta', '3'], /unknown option '--tenant-qouta'/],
    ];
    for (const [args, message] of cases) {
      const ended = await runVerb(['coordinate', '--log-level', 'error', ...args]);
      expect(ended.stderr).toMatch(message);
      expect({ args, code: ended.code }).toEqual({ args, code: 2 });
      expect(ended.stderr).not.toMatch(/\n\s+at /);
    }
    await busy.close(0);
  });
});
