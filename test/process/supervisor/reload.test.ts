import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { AgentdProcess, type Line } from '../../../scripts/fleet/agentd-process.ts';
import { FixtureServer } from '../../fixtures/mcp/fixture-server.ts';
import { eventually } from '../../helpers/eventually.ts';
import { supervisedBy } from '../../helpers/leftovers.ts';

/** Real supervisors whose configuration is changed under them. */
let folder = '';
let config = '';
let supervisor: AgentdProcess | null = null;
let lines: Line[] = [];
const servers: FixtureServer[] = [];
/** What runs noted: `SERVER instruction uri`. */
let notes: string[] = [];
/** Holds the calls of `note` back. */
let gate: Promise<void> | null = null;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'agentd-reload-'));
  config = join(folder, 'agentd.yaml');
  lines = [];
  notes = [];
  gate = null;
});

afterEach(async () => {
  const pid = supervisor?.running === true ? supervisor.pid : null;
  supervisor?.kill('SIGKILL');
  await supervisor?.exited;
  if (pid !== null) await eventually('no child to be left', () => supervisedBy(pid).length === 0);
  supervisor = null;
  for (const server of servers.splice(0)) await server.stop();
  await rm(folder, { recursive: true, force: true });
});

async function server(name: string, resources: readonly string[]): Promise<FixtureServer> {
  const started = await FixtureServer.start({
    resources: Object.fromEntries(resources.map((uri) => [uri, ''])),
    tools: {
      note: async ({ args }) => {
        notes.push(`${name} ${args.said} ${args.uri}`);
        await gate;
        return { content: [{ type: 'text', text: 'noted' }] };
      },
    },
  });
  servers.push(started);
  return started;
}

/** A run notes its instruction and its item by the tool of server `a`, `times` times. */
async function playbook(times = 1): Promise<string> {
  const path = join(folder, `note-${times}.yaml`);
  const turn = '{ tool: { name: a__note, arguments: { said: "{{instruction}}", uri: "{{event.uri}}" } } }';
  await writeFile(path, `turns: [ ${`${turn}, `.repeat(times)} { final: done } ]\n`);
  return path;
}

interface Wanted {
  readonly servers: Readonly<Record<string, FixtureServer | string>>;
  /** Match → instruction. */
  readonly routes: Readonly<Record<string, string>>;
  readonly playbook: string;
  readonly more?: string;
}

const yaml = ({ servers, routes, playbook, more = '' }: Wanted): string => `
intelligence: { endpoints: [ "script:${playbook}" ] }
mcp:
  servers:
${Object.entries(servers)
  .map(([name, it]) => `    - { name: ${name}, endpoint: "${typeof it === 'string' ? it : it.url}" }`)
  .join('\n')}
subscribe: [ "a:///**" ]
routes:
${Object.entries(routes)
  .map(([match, instruction]) => `  - { match: "${match}", instruction: "${instruction}", debounce: 0 }`)
  .join('\n')}
${more}
`;

async function start(wanted: Wanted, flags: readonly string[] = []): Promise<AgentdProcess> {
  await writeFile(config, yaml(wanted));
  const started = new AgentdProcess('supervisor', [
    'supervise',
    '--config',
    config,
    '--log-format',
    'json',
    '--metrics-addr',
    '127.0.0.1:0',
    ...flags,
  ]);
  started.onLine((line) => lines.push(line));
  supervisor = started;
  await started.line('proc.ready', ({ event }) => event === 'proc.ready');
  return started;
}

const seen = (event: string): Line[] => lines.filter((line) => line.event === event);

/** Writes another configuration, sends SIGHUP and waits for what comes of it. */
async function reload(text: string): Promise<Line> {
  if (supervisor === null) throw new Error('nothing runs');
  await writeFile(config, text);
  const outcome = supervisor.line(
    'the end of the reload',
    ({ event }) => event === 'config.reloaded' || event === 'config.invalid',
  );
  supervisor.kill('SIGHUP');
  return outcome;
}

async function metric(series: string): Promise<string | undefined> {
  const ready = seen('proc.ready')[0];
  const text = await (await fetch(`${ready?.metrics_url}/metrics`)).text();
  return text
    .split('\n')
    .find((line) => line.startsWith(`${series} `))
    ?.slice(series.length + 1);
}

const noted = (what: string): Promise<unknown> =>
  eventually(`the note ${JSON.stringify(what)}`, () => notes.includes(what));

describe('a reload of the configuration', () => {
  it('puts changed and new routes into force without a restart, and runs nothing twice', async () => {
    const a = await server('a', ['a:///one/1', 'a:///two/1']);
    const base = { servers: { a }, playbook: await playbook() };
    const { pid } = await start({ ...base, routes: { 'a:///one/*': 'first' } });
    await noted('a first a:///one/1');

    const line = await reload(yaml({ ...base, routes: { 'a:///one/*': 'second', 'a:///two/*': 'other' } }));
    expect(line).toMatchObject({ event: 'config.reloaded', generation: 2, changed: ['routes'] });
    // No route took it before, so its route is told of it now.
    await noted('a other a:///two/1');
    await a.put('a:///one/1', 'changed');
    await noted('a second a:///one/1');
    expect(notes).toEqual(['a first a:///one/1', 'a other a:///two/1', 'a second a:///one/1']);
    expect(supervisor?.pid).toBe(pid);
    expect(await metric('agent_config_generation')).toBe('2');
    expect(await metric('agent_config_reload_total{result="applied"}')).toBe('1');
    expect(a.count('subscribe a:///one/1')).toBe(1);
  });

  it('keeps what is in force when the new configuration cannot be read, and says where it is wrong', async () => {
    const a = await server('a', []);
    const wanted = { servers: { a }, playbook: await playbook(), routes: { 'a:///*': 'first' } };
    await start(wanted);
    const broken = await reload(yaml(wanted).replace('routes:', 'routes: ]'));
    expect(broken).toMatchObject({ event: 'config.invalid', level: 'error', generation: 1 });
    expect(JSON.stringify(broken.err)).toContain('agentd.yaml:');
    expect(broken.remedy).not.toBe('');
    const unknown = await reload(`${yaml(wanted)}limits: { max_stepps: 3 }\n`);
    expect(unknown.event).toBe('config.invalid');
    expect(JSON.stringify(unknown.err)).toContain('max_stepps');
    await a.put('a:///1', '');
    await noted('a first a:///1');
    expect(await metric('agent_config_generation')).toBe('1');
    expect(await metric('agent_config_reload_total{result="rejected"}')).toBe('2');
    expect(await reload(yaml(wanted))).toMatchObject({
      event: 'config.reloaded',
      generation: 1,
      changed: [],
    });
  });

  it('is rejected as a whole, by the name of the key, when a key cannot change', async () => {
    const a = await server('a', []);
    const wanted = { servers: { a }, playbook: await playbook(), routes: { 'a:///*': 'first' } };
    await start(wanted);
    const line = await reload(
      yaml({ ...wanted, routes: { 'a:///*': 'second' }, more: 'shard: 0/2\nagent: { name: other }' }),
    );
    expect(line).toMatchObject({ event: 'config.invalid', err: { type: 'CONFIG_NOT_RELOADABLE' } });
    const { err, remedy } = line as { err?: { message: string }; remedy?: string };
    expect(err?.message).toMatch(/agent\.name cannot change.*shard\.index cannot change/);
    expect(remedy).toContain('Restart agentd to change agent.name, shard.index');
    await a.put('a:///1', '');
    await noted('a first a:///1');
    expect(notes).toEqual(['a first a:///1']);
  });

  it('lets a run in flight finish on its route, model and server, and closes the server then', async () => {
    const [a, other] = [await server('a', ['a:///1']), await server('other', [])];
    let open = (): void => undefined;
    gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    const base = { servers: { a }, routes: { 'a:///*': 'first' } };
    await start({ ...base, playbook: await playbook(2) });
    await noted('a first a:///1');

    const line = await reload(
      yaml({ servers: { a: other }, playbook: await playbook(1), routes: { 'a:///*': 'second' } }),
    );
    expect(line).toMatchObject({ changed: ['intelligence', 'mcp.servers', 'routes'], generation: 2 });
    expect(a.openSockets).toBeGreaterThan(0);
    gate = null;
    open();
    await eventually('the run to end', () => seen('subagent.exit').length === 1);
    expect(seen('subagent.exit')[0]).toMatchObject({ status: 'completed' });
    // Both calls of the run went where it began; nothing of it reached the new server.
    expect(notes).toEqual(['a first a:///1', 'a first a:///1']);
    await eventually('the old server to be let go', () => a.openSockets === 0);
    await other.put('a:///2', '');
    await noted('other second a:///2');
  });

  it('subscribes at a server that is added and closes one that is removed', async () => {
    const [a, b] = [await server('a', []), await server('b', ['a:///b'])];
    const base = { playbook: await playbook(), routes: { 'a:///*': 'work' } };
    await start({ ...base, servers: { a } });
    expect(await reload(yaml({ ...base, servers: { a, b } }))).toMatchObject({ changed: ['mcp.servers'] });
    await noted('a work a:///b');
    expect(b.count('subscribe a:///b')).toBe(1);
    expect(await metric('agent_mcp_up{server="b"}')).toBe('1');

    expect(await reload(yaml({ ...base, servers: { a } }))).toMatchObject({ changed: ['mcp.servers'] });
    await eventually('the removed server to be let go', () => b.openSockets === 0);
    expect(await metric('agent_mcp_up{server="b"}')).toBeUndefined();
    await b.put('a:///b', 'unheard');
    await a.put('a:///a', '');
    await noted('a work a:///a');
    expect(notes).toEqual(['a work a:///b', 'a work a:///a']);
  });

  it('is rejected when a required server it adds cannot be reached', async () => {
    const a = await server('a', []);
    const gone = await server('gone', []);
    await gone.stop();
    const base = { playbook: await playbook(), routes: { 'a:///*': 'work' } };
    await start({ ...base, servers: { a } });
    const line = await reload(yaml({ ...base, servers: { a, gone }, routes: { 'a:///*': 'other' } }));
    expect(line).toMatchObject({ event: 'config.invalid', err: { type: 'MCP_UNAVAILABLE' } });
    await a.put('a:///1', '');
    await noted('a work a:///1');
  });

  it('changes the log level and the limits of later runs', async () => {
    const a = await server('a', []);
    const wanted = { servers: { a }, playbook: await playbook(3), routes: { 'a:///*': 'work' } };
    await start(wanted);
    const more = 'limits: { max_steps: 1 }\nobservability: { log: { level: debug } }';
    expect(await reload(yaml({ ...wanted, more }))).toMatchObject({
      changed: ['limits', 'observability.log.level'],
    });
    await a.put('a:///1', '');
    await eventually('the run to end', () => seen('subagent.exit').length === 1);
    expect(seen('subagent.exit')[0]).toMatchObject({ status: 'exhausted_steps' });
    expect(seen('resource.updated').length).toBeGreaterThan(0);
  });

  it('follows files that are replaced, and links that are swapped, with --watch-config', async () => {
    const a = await server('a', []);
    const base = { servers: { a }, playbook: await playbook() };
    // As Kubernetes mounts a ConfigMap: config → ..data/agentd.yaml, ..data → ..1
    await mkdir(join(folder, '..1'));
    await writeFile(join(folder, '..1', 'agentd.yaml'), yaml({ ...base, routes: { 'a:///*': 'first' } }));
    await symlink('..1', join(folder, '..data'));
    const mounted = join(folder, 'mounted.yaml');
    await symlink(join('..data', 'agentd.yaml'), mounted);
    const extra = join(folder, 'extra.yaml');
    await writeFile(extra, 'limits: { max_steps: 10 }\n');
    await start({ ...base, routes: { 'a:///*': 'unused' } }, [
      '--config',
      mounted,
      '--config',
      extra,
      '--watch-config',
    ]);
    const reloaded = (count: number): Promise<unknown> =>
      eventually(`reload ${count}`, () => seen('config.reloaded').length === count);

    await mkdir(join(folder, '..2'));
    await writeFile(join(folder, '..2', 'agentd.yaml'), yaml({ ...base, routes: { 'a:///*': 'second' } }));
    await symlink('..2', join(folder, '..data_tmp'));
    await rename(join(folder, '..data_tmp'), join(folder, '..data'));
    await reloaded(1);
    expect(seen('config.reloaded')[0]).toMatchObject({ changed: ['routes'] });

    await writeFile(join(folder, 'extra.new'), 'limits: { max_steps: 11 }\n');
    await rename(join(folder, 'extra.new'), extra);
    await reloaded(2);
    expect(seen('config.reloaded')[1]).toMatchObject({ changed: ['limits'] });
    await a.put('a:///1', '');
    await noted('a second a:///1');
    expect(seen('config.invalid')).toEqual([]);
  });
});
