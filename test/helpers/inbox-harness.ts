import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type InboxOptions, type RunningInbox, startInbox } from '../../supervisor/inbox/run-inbox.ts';
import { recordingLog } from './null-log.ts';
import { connectSdkClient, type TestClient } from './sdk-client.ts';

/** One inbox over a folder of its own, with the clients connected to it. */
export class InboxHarness {
  /** Holds the folder and whatever a test needs beside it. */
  readonly base = mkdtempSync(join(tmpdir(), 'agentd-inbox-'));
  readonly folder = join(this.base, 'in');
  readonly log = recordingLog();
  private inbox: RunningInbox | undefined;
  private readonly clients: TestClient[] = [];

  constructor() {
    mkdirSync(this.folder);
  }

  /** Starts the inbox and connects a client. */
  async start(options: Partial<InboxOptions> = {}): Promise<TestClient> {
    this.inbox = await startInbox({
      folder: this.folder,
      listen: 'http://127.0.0.1:0',
      results: null,
      maxFiles: 1000,
      log: this.log.log,
      ...options,
    });
    const client = await connectSdkClient(this.inbox.url);
    this.clients.push(client);
    return client;
  }

  /** Where it serves, once started. */
  get url(): string {
    if (this.inbox === undefined) throw new Error('the inbox has not been started');
    return this.inbox.url;
  }

  /** Writes a file of the folder; its content is its name unless given. */
  put(path: string, content: string | Buffer = path): void {
    writeFileSync(join(this.folder, path), content);
  }

  async rescan(): Promise<void> {
    await this.inbox?.rescan();
  }

  async stop(): Promise<void> {
    await this.inbox?.close(1000);
    this.inbox = undefined;
  }

  async dispose(): Promise<void> {
    for (const client of this.clients.splice(0)) await client.close();
    await this.stop();
    rmSync(this.base, { recursive: true, force: true });
  }
}

/** The URIs of every page of `resources/list`. */
export async function listed(client: TestClient): Promise<string[]> {
  const uris: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await client.client.listResources(cursor === undefined ? {} : { cursor });
    uris.push(...page.resources.map((resource) => resource.uri));
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return uris;
}

/** The text of a resource. */
export async function textOf(client: TestClient, uri: string): Promise<string> {
  const [content] = (await client.client.readResource({ uri })).contents;
  return content !== undefined && 'text' in content ? String(content.text) : '(no text)';
}
