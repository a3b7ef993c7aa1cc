import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { AgentdProcess } from '../../scripts/fleet/agentd-process.ts';
import { Fleet } from '../../scripts/fleet/fleet.ts';
import { InboxClient, type Tally, tally } from '../../scripts/fleet/inbox-client.ts';
import { eventually } from './eventually.ts';

const FIXTURES = fileURLToPath(new URL('../fixtures/fleet/', import.meta.url));

export interface TestFleetOptions {
  readonly documents: number;
  /** Flags of each supervisor. */
  readonly supervisors: readonly (readonly string[])[];
  readonly playbook: 'quick' | 'slow' | 'chatty';
  /** Configuration of the supervisors. Default: one claim route on the inbox. */
  readonly config?: 'agentd' | 'standby' | 'session';
  readonly common?: readonly string[];
  readonly database?: string;
  /** The command line of each supervisor, where it is not the built one. */
  readonly programs?: readonly (string | undefined)[];
}

/** A real fleet over a folder of generated documents, and a client that sees what it did. */
export class TestFleet {
  private constructor(
    readonly folder: string,
    readonly fleet: Fleet,
    readonly inbox: InboxClient,
    private readonly count: number,
  ) {}

  static async start(options: TestFleetOptions): Promise<TestFleet> {
    const folder = await mkdtemp(join(tmpdir(), 'agentd-fleet-'));
    const documents = join(folder, 'inbox');
    await mkdir(documents);
    for (let index = 0; index < options.documents; index++) {
      await writeFile(join(documents, `document ${index}.txt`), `The body of document ${index}.\n`);
    }
    const fleet = await Fleet.start({
      documents,
      state: folder,
      supervisors: options.supervisors,
      common: [
        '--config',
        join(FIXTURES, `${options.config ?? 'agentd'}.yaml`),
        '--metrics-addr',
        '127.0.0.1:0',
        ...(options.common ?? []),
      ],
      env: { PLAYBOOK: join(FIXTURES, `${options.playbook}.yaml`) },
      ...(options.programs === undefined ? {} : { programs: options.programs }),
      ...(options.database === undefined ? {} : { database: options.database }),
    });
    return new TestFleet(folder, fleet, await InboxClient.connect(fleet.inboxUrl), options.documents);
  }

  /** Resolves when every document has a result. */
  async finished(timeoutMs = 120_000): Promise<void> {
    await eventually(
      `${this.count} documents to be finished`,
      async () => (await this.inbox.finished()) >= this.count,
      timeoutMs,
    );
  }

  /** Submits items to the coordination server with the work verb. */
  async submit(items: readonly string[]): Promise<void> {
    for (const item of items) {
      const submitted = new AgentdProcess('submit', ['work', 'submit', item, '--url', this.fleet.coordUrl]);
      const { code } = await submitted.exited;
      if (code !== 0) throw new Error(`work submit ${item} ended with ${code}: ${submitted.tail}`);
    }
  }

  async tally(): Promise<Tally> {
    return tally(await this.inbox.documents(), await this.inbox.results());
  }

  async close(): Promise<void> {
    await this.inbox.close();
    this.fleet.kill();
    await Promise.all(
      [...this.fleet.supervisors, this.fleet.coordinator, this.fleet.inbox].map((one) => one.exited),
    );
    await rm(this.folder, { recursive: true, force: true });
  }
}
