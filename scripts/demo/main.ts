import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Fleet } from '../fleet/fleet.ts';
import { InboxClient, tally } from '../fleet/inbox-client.ts';
import { Progress } from './progress.ts';
import { summary } from './summary.ts';
import { View } from './view.ts';

/**
 * The main job, end to end: a coordination server, an inbox of real documents and three sharded
 * supervisors, all real processes. Ends by itself with a table; `--keep` stays until Ctrl-C.
 */

const EXAMPLE = fileURLToPath(new URL('../../examples/inbox', import.meta.url));
const SHARDS = 3;
/** Longest wait for the scripted model to finish the documents, ms. */
const PATIENCE_MS = 120_000;

/** What a person may set to use a model of their own. */
const MODEL_VARIABLES = ['AGENT_INTELLIGENCE', 'AGENT_INTELLIGENCE_TOKEN', 'AGENT_MODEL', 'INTELLIGENCE'];

async function main(keep: boolean): Promise<number> {
  const interrupted = new Promise<'interrupted'>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => resolve('interrupted'));
  });
  const state = await mkdtemp(join(tmpdir(), 'agentd-demo-'));
  let fleet: Fleet | null = null;
  try {
    fleet = await startFleet(state);
    return await work(fleet, join(state, 'inbox'), interrupted, keep);
  } catch (error) {
    process.stderr.write(`demo: ${error instanceof Error ? error.message : String(error)}\n`);
    return 1;
  } finally {
    fleet?.kill();
    await rm(state, { recursive: true, force: true });
  }
}

async function startFleet(state: string): Promise<Fleet> {
  const documents = join(state, 'inbox');
  await cp(join(EXAMPLE, 'documents'), documents, { recursive: true });
  const own = Object.fromEntries(
    MODEL_VARIABLES.flatMap((key) => (process.env[key] ? [[key, process.env[key]]] : [])),
  );
  const scripted = own.AGENT_INTELLIGENCE === undefined && own.INTELLIGENCE === undefined;
  return Fleet.start({
    documents,
    state,
    detached: true,
    common: [
      '--config',
      join(EXAMPLE, 'agentd.yaml'),
      '--metrics-addr',
      '127.0.0.1:0',
      ...(scripted ? ['--intelligence', `script:${join(EXAMPLE, 'playbook.yaml')}`] : []),
    ],
    supervisors: Array.from({ length: SHARDS }, (_, index) => ['--shard', `${index}/${SHARDS}`]),
    env: own,
  });
}

async function work(
  fleet: Fleet,
  documents: string,
  interrupted: Promise<'interrupted'>,
  keep: boolean,
): Promise<number> {
  const out = process.stdout;
  const inbox = await InboxClient.connect(fleet.inboxUrl);
  const total = (await inbox.documents()).length;
  out.write(
    `coordination server ${fleet.coordUrl}\ninbox               ${fleet.inboxUrl}  (${total} documents)\n`,
  );
  out.write(`supervisors         ${SHARDS} shards, each item claimed before it is worked on\n`);
  if (keep) {
    out.write(`drop files into     ${documents}\nresults are in      ${join(documents, '.results')}\n`);
    out.write('Ctrl-C drains\n');
  }
  out.write('\n');

  const progress = new Progress(SHARDS);
  const view = new View(out, progress, total);
  let allDone = (): void => undefined;
  const finished = new Promise<'finished'>((resolve) => {
    allDone = () => resolve('finished');
  });
  fleet.onLine((shard, line) => {
    progress.take(shard, line);
    const trouble = progress.trouble(line);
    if (trouble !== null) view.trouble(trouble);
    if (line.event === 'claim.acked') {
      if (progress.done.size > total) view.setTotal(progress.done.size);
      view.done(String(line.item), shard);
      if (progress.done.size >= total) allDone();
    }
  });
  view.start();
  let end: 'finished' | 'interrupted' | 'late';
  let up = false;
  try {
    const started = await Promise.race([fleet.startSupervisors(), interrupted]);
    up = started !== 'interrupted';
    if (started === 'interrupted') end = started;
    else if (keep) end = await Promise.race([interrupted, fleet.anyFailure()]);
    else end = await Promise.race([finished, interrupted, late(), fleet.anyFailure()]);
  } finally {
    view.stop();
  }
  const counted = await fleet.skipped().catch(() => []);
  const result = tally(await inbox.documents(), await inbox.results());
  await inbox.close();
  const exits = await fleet.stop();
  out.write(summary({ result, progress, exits, skipped: counted }));
  if (end === 'late') out.write(`\nnot finished after ${PATIENCE_MS / 1000} s\n`);
  // One that was interrupted while it started had nothing to drain.
  const clean = !up || exits.every(({ code }) => code === 0);
  const complete = result.duplicates === 0 && (end !== 'finished' || result.lost.length === 0);
  return clean && complete && end !== 'late' ? 0 : 1;
}

function late(): Promise<'late'> {
  return new Promise((resolve) => {
    setTimeout(() => resolve('late'), PATIENCE_MS).unref();
  });
}

function flags(): { readonly keep: boolean } | null {
  try {
    const { values } = parseArgs({ options: { keep: { type: 'boolean', default: false } } });
    return values;
  } catch (error) {
    process.stderr.write(`demo: ${error instanceof Error ? error.message : String(error)}\n`);
    process.stderr.write('  The one flag is --keep: npm start -- --keep stays until Ctrl-C.\n');
    return null;
  }
}

const given = flags();
process.exitCode = given === null ? 2 : await main(given.keep);
