import { join, sep } from 'node:path';
import { systemClock } from '../reactor/clock.ts';
import { startHttpServer } from '../surface/http-server.ts';
import { MCP_PATH, mcpEndpoint } from '../surface/mcp-endpoint.ts';
import { ResourceHub } from '../surface/resource-hub.ts';
import type { Log } from '../telemetry/log.ts';
import { Inbox } from './inbox.ts';
import { type FolderChange, InboxFolder } from './inbox-folder.ts';
import { resolveFolder } from './inbox-root.ts';
import { inboxServer } from './inbox-server.ts';
import { ResultsStore } from './results-store.ts';
import type { SettleTimes } from './settling.ts';

export interface InboxOptions {
  readonly folder: string;
  /** `http://` on loopback. */
  readonly listen: string;
  /** Null: `.results` in the folder, where no listing shows it. */
  readonly results: string | null;
  readonly maxFiles: number;
  readonly log: Log;
  readonly rescanMs?: number;
  readonly settle?: SettleTimes;
}

export interface RunningInbox {
  /** Of its MCP endpoint. */
  readonly url: string;
  readonly documents: number;
  readonly results: number;
  /** Looks at the whole folder now instead of at the next rescan. */
  rescan(): Promise<void>;
  close(budgetMs: number): Promise<void>;
}

/** Results tracked at most; each costs some hundred bytes of memory. */
const MAX_RESULTS = 250_000;

/**
 * Serves a folder as MCP resources until closed.
 *
 * @throws AgentdError INBOX_FOLDER_UNUSABLE, INBOX_RESULTS_UNUSABLE, INBOX_RESULTS_LOCKED, INBOX_TOO_LARGE
 *   and what `startHttpServer` throws, all exit 2
 */
export async function startInbox(options: InboxOptions): Promise<RunningInbox> {
  const root = await resolveFolder(options.folder);
  const path = options.results ?? join(root, '.results');
  const results = await ResultsStore.open(path, MAX_RESULTS, options.log);
  try {
    return await serve(root, results, options);
  } catch (error) {
    results.close();
    throw error;
  }
}

async function serve(root: string, results: ResultsStore, options: InboxOptions): Promise<RunningInbox> {
  const { log } = options;
  const hub = new ResourceHub();
  const folder = await InboxFolder.open({
    folder: options.folder,
    excluded: results.folder.startsWith(root + sep) ? results.folder : null,
    maxFiles: options.maxFiles,
    clock: systemClock,
    log,
    ...(options.settle === undefined ? {} : { settle: options.settle }),
    ...(options.rescanMs === undefined ? {} : { rescanMs: options.rescanMs }),
    onChange: (change) => announce(hub, log, change),
  });
  const inbox = new Inbox(folder, results);
  const endpoint = mcpEndpoint({ build: (session) => inboxServer(inbox, session), hub, log });
  try {
    const http = await startHttpServer({ url: options.listen, routes: endpoint.routes, log });
    return {
      url: http.url + MCP_PATH,
      documents: folder.documents.size,
      results: results.size,
      rescan: () => folder.rescan(),
      close: async (budgetMs) => {
        const end = performance.now() + budgetMs;
        await endpoint.close(budgetMs);
        await http.close(end - performance.now());
        await folder.close();
        results.close();
      },
    };
  } catch (error) {
    await endpoint.close(0);
    await folder.close();
    throw error;
  }
}

function announce(hub: ResourceHub, log: Log, change: FolderChange): void {
  for (const uri of change.updated) {
    log.debug('resource.updated', { uri, subscribers: hub.subscriberCount(uri) });
    hub.notifyUpdated(uri);
  }
  if (change.listChanged) hub.notifyListChanged();
}
