import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import {
  CallToolResultSchema,
  ListResourcesResultSchema,
  ListToolsResultSchema,
  ReadResourceResultSchema,
  type Resource,
  ResourceListChangedNotificationSchema,
  ResourceUpdatedNotificationSchema,
  type Tool,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import type { Link } from './link.ts';
import type { CallOptions, CallResult, ResourceInfo } from './peers.ts';
import { cancelled, type RequestName, requestFailure, unusable } from './session-errors.ts';
import { contentText } from './tool-result.ts';

/** Longest delay a Node timer holds, ms; the SDK would fire a longer one at once. */
const LONGEST_TIMER = 2 ** 31 - 1;
/** Pages and entries of one listing that are read (invariant 8). */
const MAX_PAGES = 2_000;
const MAX_ENTRIES = 200_000;
const ENDLESS = `it has more than ${MAX_ENTRIES} entries or does not end`;
/** How long a server may take to open its event stream before the session goes on without, ms. */
const STREAM_WAIT_MS = 2_000;

/** What a session tells the connection that owns it. */
export interface SessionEvents {
  updated(uri: string): void;
  resourcesChanged(): void;
  toolsChanged(): void;
}

type RequestSettings = {
  timeout: number;
  resetTimeoutOnProgress: boolean;
  signal: AbortSignal;
  onprogress?: (progress: {
    progress: number;
    total?: number | undefined;
    message?: string | undefined;
  }) => void;
};

/** One initialised MCP session: from the handshake to the end of its transport. */
export class Session {
  private constructor(
    private readonly server: string,
    private readonly client: Client,
    readonly link: Link,
    /** Whether updates can be heard was not known in time; {@link Link.ready} tells later. */
    readonly undecided: boolean,
  ) {}

  /**
   * Performs the handshake.
   *
   * @throws AgentdError MCP_UNAVAILABLE, MCP_TIMEOUT or MCP_PROTOCOL
   */
  static async open(
    server: string,
    info: { readonly name: string; readonly version: string },
    link: Link,
    events: SessionEvents,
    timeoutMs: number,
  ): Promise<Session> {
    const client = new Client({ name: info.name, version: info.version }, { capabilities: {} });
    client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) =>
      events.updated(params.uri),
    );
    client.setNotificationHandler(ResourceListChangedNotificationSchema, () => events.resourcesChanged());
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => events.toolsChanged());
    try {
      await client.connect(link.transport, { timeout: Math.min(timeoutMs, LONGEST_TIMER) });
    } catch (error) {
      throw requestFailure({ what: 'the handshake', server, epitaph: link.epitaph }, error);
    }
    // Subscribing before the stream is open would lose what is sent in between.
    let timer: NodeJS.Timeout | undefined;
    const patience = new Promise<boolean>((resolve) => {
      timer = setTimeout(() => resolve(true), STREAM_WAIT_MS);
    });
    const undecided = await Promise.race([link.ready.then(() => false), patience]);
    clearTimeout(timer);
    return new Session(server, client, link, undecided);
  }

  /** Why updates of resources cannot be heard on this session, or null. */
  get deaf(): string | null {
    const resources = this.client.getServerCapabilities()?.resources;
    if (resources === undefined) return 'the server offers no resources';
    if (resources.subscribe !== true) return 'the server does not offer resource subscriptions';
    return this.link.deaf;
  }

  /** Whether the server announces new and removed resources. */
  get announcesLists(): boolean {
    return this.client.getServerCapabilities()?.resources?.listChanged === true;
  }

  async callTool(tool: string, args: Record<string, unknown>, options: CallOptions): Promise<CallResult> {
    const params = { name: tool, arguments: args, ...(options.meta ? { _meta: { ...options.meta } } : {}) };
    const answer = await this.request(`tool ${tool}`, options, (settings) =>
      this.client.request({ method: 'tools/call', params }, CallToolResultSchema, settings),
    );
    return {
      isError: answer.isError === true,
      text: contentText(answer.content),
      structured: answer.structuredContent,
    };
  }

  async readResource(
    uri: string,
    options: CallOptions,
  ): Promise<{ text: string; mimeType: string | null; info: ResourceInfo | null }> {
    const params = { uri, ...(options.meta ? { _meta: { ...options.meta } } : {}) };
    const answer = await this.request(`resource ${uri}`, options, (settings) =>
      this.client.request({ method: 'resources/read', params }, ReadResourceResultSchema, settings),
    );
    const text = answer.contents
      .map((part) => ('text' in part ? part.text : `[${part.mimeType ?? 'binary'}, base64]\n${part.blob}`))
      .join('\n');
    const first = answer.contents[0];
    return {
      text,
      mimeType: first?.mimeType ?? null,
      info: first === undefined ? null : contentsInfo(first, Buffer.byteLength(text)),
    };
  }

  async listResources(options: CallOptions): Promise<readonly ResourceInfo[]> {
    const found: ResourceInfo[] = [];
    let cursor: string | undefined;
    for (let page = 0; page < MAX_PAGES; page++) {
      const params = cursor === undefined ? {} : { cursor };
      const answer = await this.request('the list of resources', options, (settings) =>
        this.client.request({ method: 'resources/list', params }, ListResourcesResultSchema, settings),
      );
      for (const resource of answer.resources) found.push(resourceInfo(resource));
      cursor = answer.nextCursor;
      if (cursor === undefined) return found;
      if (found.length > MAX_ENTRIES) break;
    }
    throw unusable(this.named('the list of resources'), ENDLESS);
  }

  /** Empty when the server offers no tools. */
  async listTools(options: CallOptions): Promise<readonly Tool[]> {
    if (this.client.getServerCapabilities()?.tools === undefined) return [];
    const found: Tool[] = [];
    let cursor: string | undefined;
    for (let page = 0; page < MAX_PAGES; page++) {
      const params = cursor === undefined ? {} : { cursor };
      const answer = await this.request('the list of tools', options, (settings) =>
        this.client.request({ method: 'tools/list', params }, ListToolsResultSchema, settings),
      );
      found.push(...answer.tools);
      cursor = answer.nextCursor;
      if (cursor === undefined) return found;
      if (found.length > MAX_ENTRIES) break;
    }
    throw unusable(this.named('the list of tools'), ENDLESS);
  }

  async subscribe(uri: string, options: CallOptions): Promise<void> {
    await this.request(`subscription to ${uri}`, options, (settings) =>
      this.client.subscribeResource({ uri }, settings),
    );
  }

  async unsubscribe(uri: string, options: CallOptions): Promise<void> {
    await this.request(`end of the subscription to ${uri}`, options, (settings) =>
      this.client.unsubscribeResource({ uri }, settings),
    );
  }

  async ping(timeoutMs: number): Promise<void> {
    await this.request('ping', { timeoutMs }, (settings) => this.client.ping(settings));
  }

  /** @throws AgentdError: always one, whatever went wrong below */
  private async request<T>(
    what: string,
    options: CallOptions,
    send: (settings: RequestSettings) => Promise<T>,
  ): Promise<T> {
    // The SDK keeps its listener on a signal for ever, so it gets one that ends with the request.
    const controller = new AbortController();
    const forward = (): void => controller.abort(options.signal?.reason);
    const givenUp = (): boolean => options.signal?.aborted === true;
    if (givenUp()) throw cancelled(this.named(what));
    options.signal?.addEventListener('abort', forward);
    const { onProgress } = options;
    try {
      return await send({
        timeout: Math.min(Math.max(1, options.timeoutMs), LONGEST_TIMER),
        resetTimeoutOnProgress: true,
        signal: controller.signal,
        ...(onProgress === undefined
          ? {}
          : {
              onprogress: ({ progress, total, message }) =>
                onProgress(progressNote(progress, total, message)),
            }),
      });
    } catch (error) {
      throw givenUp() ? cancelled(this.named(what)) : requestFailure(this.named(what), error);
    } finally {
      options.signal?.removeEventListener('abort', forward);
    }
  }

  private named(what: string): RequestName {
    return { what, server: this.server, epitaph: this.link.epitaph };
  }
}

function progressNote(progress: number, total: number | undefined, message: string | undefined): string {
  const share = total === undefined ? `${progress}` : `${progress}/${total}`;
  return message === undefined ? share : `${share} ${message.slice(0, 200)}`;
}

function resourceInfo(resource: Resource): ResourceInfo {
  return {
    uri: resource.uri,
    name: resource.name,
    mimeType: resource.mimeType ?? null,
    size: resource.size ?? null,
    lastModified: resource.annotations?.lastModified ?? null,
    meta: resource._meta ?? {},
  };
}

/** What a read says of its resource: contents have no annotations, so servers put the facts into `_meta`. */
function contentsInfo(
  contents: { uri: string; mimeType?: string | undefined; _meta?: Record<string, unknown> | undefined },
  bytes: number,
): ResourceInfo {
  const meta = contents._meta ?? {};
  return {
    uri: contents.uri,
    name: contents.uri,
    mimeType: contents.mimeType ?? null,
    size: typeof meta.size === 'number' ? meta.size : bytes,
    lastModified: typeof meta.lastModified === 'string' ? meta.lastModified : null,
    meta,
  };
}
