import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { claimKey } from '../../../protocol/claim-key.ts';
import type { AgentdProcess, Line } from '../../../scripts/fleet/agentd-process.ts';
import { InboxClient } from '../../../scripts/fleet/inbox-client.ts';
import { eventually } from '../../helpers/eventually.ts';
import { TestFleet } from '../../helpers/test-fleet.ts';

export const PLAYBOOK = fileURLToPath(new URL('playbook.yaml', import.meta.url));
const CONTRACT = fileURLToPath(new URL('contract.yaml', import.meta.url));
/** The route of the fleet's configuration, part of every claim key. */
const ROUTE = 'documents';
/** Where no lease has to end: a busy machine never loses one. */
const LONG_TTL_MS = 60_000;
/** Short, so that a dead holder's items move on soon; long enough for a busy machine to renew in. */
export const SHORT_TTL_MS = 6_000;

export interface Told {
  readonly supervisor: number;
  readonly line: Line;
}

export interface FailingFleetOptions {
  /** Flags of each supervisor; an entry may be changed between a stop and a start. */
  readonly supervisors: readonly (readonly string[])[];
  readonly common?: readonly string[];
  /** Default: one claim route on the inbox. */
  readonly config?: 'agentd' | 'standby';
  /** Default: one that no test outlasts. */
  readonly ttlMs?: number;
  /** The command line of each supervisor, where it is not the built one. */
  readonly programs?: readonly (string | undefined)[];
}

/** A real fleet that remembers what every supervisor said, for tests that hurt it. */
export class FailingFleet {
  readonly told: Told[] = [];
  private readonly waiting = new Set<() => void>();

  private constructor(
    readonly test: TestFleet,
    private readonly options: FailingFleetOptions,
  ) {}

  /** Starts the servers and every supervisor. */
  static async start(options: FailingFleetOptions): Promise<FailingFleet> {
    const test = await TestFleet.start({
      documents: 0,
      supervisors: options.supervisors,
      playbook: 'quick',
      ...(options.config === undefined ? {} : { config: options.config }),
      common: [
        '--intelligence',
        `script:${PLAYBOOK}`,
        '--config',
        CONTRACT,
        '--claim-ttl',
        `${options.ttlMs ?? LONG_TTL_MS}ms`,
        '--log-level',
        'debug',
        ...(options.common ?? []),
      ],
      ...(options.programs === undefined ? {} : { programs: options.programs }),
    });
    const fleet = new FailingFleet(test, options);
    test.fleet.onLine((supervisor, line) => {
      fleet.told.push({ supervisor, line });
      for (const look of [...fleet.waiting]) look();
    });
    try {
      await test.fleet.startSupervisors();
    } catch (error) {
      await fleet.close();
      throw error;
    }
    return fleet;
  }

  supervisor(index: number): AgentdProcess {
    const found = this.test.fleet.supervisors[index];
    if (found === undefined) throw new Error(`there is no supervisor ${index}`);
    return found;
  }

  /** Puts documents into the inbox; their URIs. */
  async drop(...names: string[]): Promise<string[]> {
    for (const name of names) {
      const temporary = join(this.test.folder, 'inbox', `.${name}.tmp`);
      await writeFile(temporary, `The body of ${name}.\n`);
      await rename(temporary, join(this.test.folder, 'inbox', name));
    }
    return names.map((name) => `inbox:///${name}`);
  }

  /** Every line of one event so far, about one item if it is named. */
  lines(event: string, item?: string): Told[] {
    return this.told.filter(
      ({ line }) => line.event === event && (item === undefined || line.item === item || line.uri === item),
    );
  }

  /** Resolves with the first line, past or to come, that matches. */
  async said(event: string, item?: string, by?: (told: Told) => boolean, timeoutMs = 60_000): Promise<Told> {
    const find = (): Told | undefined => this.lines(event, item).find((told) => by?.(told) ?? true);
    const already = find();
    if (already !== undefined) return already;
    return new Promise((resolve, reject) => {
      const look = (): void => {
        const found = find();
        if (found === undefined) return;
        clearTimeout(timer);
        this.waiting.delete(look);
        resolve(found);
      };
      const timer = setTimeout(() => {
        this.waiting.delete(look);
        const last = this.told
          .slice(-15)
          .map(({ supervisor, line }) => `${supervisor} ${JSON.stringify(line)}`);
        reject(
          new Error(`nobody said ${event} of ${item ?? 'anything'} in ${timeoutMs} ms:\n${last.join('\n')}`),
        );
      }, timeoutMs);
      this.waiting.add(look);
    });
  }

  /** Resolves when every item has been acked by somebody. */
  async acked(items: readonly string[], timeoutMs = 60_000): Promise<void> {
    await Promise.all(items.map((item) => this.said('claim.acked', item, undefined, timeoutMs)));
  }

  /** Grants of an item that were neither released nor ran out; 1 of an item that is settled. */
  settledGrants(item: string): number {
    const [granted, released, expired] = ['claim.granted', 'claim.released', 'claim.expired'].map(
      (event) => this.lines(event, item).length,
    );
    return (granted ?? 0) - (released ?? 0) - (expired ?? 0);
  }

  /** How many distinct side effects each of the items has had. */
  async effects(items: readonly string[]): Promise<number[]> {
    // A connection for each question: the inbox may have been restarted.
    const inbox = await InboxClient.connect(this.test.fleet.inboxUrl);
    const results = await inbox.results().finally(() => inbox.close());
    return items.map((item) => results.filter(({ uri }) => uri === item).length);
  }

  /** Resolves when each of the items has had a side effect. */
  async done(items: readonly string[], timeoutMs = 60_000): Promise<void> {
    await eventually(
      `a side effect of each of ${items.length} items`,
      async () => (await this.effects(items)).every((count) => count > 0),
      timeoutMs,
    );
  }

  /** Resolves when an item has had exactly so many distinct side effects. */
  async doneTimes(item: string, times: number, timeoutMs = 60_000): Promise<void> {
    const what = `${times} side effects of ${item}`;
    await eventually(what, async () => (await this.effects([item]))[0] === times, timeoutMs);
  }

  /** One question to the coordination server. */
  async ask(tool: string, args: Record<string, unknown>): Promise<Record<string, unknown>> {
    const client = new Client({ name: 'test', version: '1' });
    await client.connect(new StreamableHTTPClientTransport(new URL(this.test.fleet.coordUrl)));
    try {
      const answer = await client.callTool({ name: tool, arguments: args });
      return (answer.structuredContent ?? {}) as Record<string, unknown>;
    } finally {
      await client.close();
    }
  }

  /** An item as the ledger has it. */
  async record(item: string): Promise<Record<string, unknown>> {
    return this.ask('work.result', { work_id: claimKey(item, ROUTE) });
  }

  /** A figure of one supervisor. */
  async metric(supervisor: number, name: string): Promise<number> {
    const text = await (await fetch(new URL('/metrics', this.test.fleet.metricsUrls[supervisor]))).text();
    const found = new RegExp(`^${name} ([-+.\\de]+)$`, 'm').exec(text);
    if (found === null) throw new Error(`supervisor ${supervisor} serves no ${name}`);
    return Number(found[1]);
  }

  async kill(index: number): Promise<void> {
    this.supervisor(index).kill('SIGKILL');
    await this.supervisor(index).exited;
  }

  /** Drains it; how it ended. */
  async drain(index: number): Promise<{ code: number | null; signal: string | null }> {
    this.supervisor(index).kill('SIGTERM');
    return this.supervisor(index).exited;
  }

  /** Starts every supervisor that has ended. */
  async revive(): Promise<void> {
    await Promise.all(
      this.options.supervisors.map(async (_, index) => {
        if (!this.supervisor(index).running) await this.test.fleet.startSupervisor(index);
      }),
    );
  }

  async close(): Promise<void> {
    // A process that a test has stopped cannot end by a signal other than SIGKILL, which close() sends.
    await this.test.close();
  }
}
