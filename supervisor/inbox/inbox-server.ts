import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import {
  CallToolRequestSchema,
  ListResourcesRequestSchema,
  ListResourceTemplatesRequestSchema,
  ListToolsRequestSchema,
  ReadResourceRequestSchema,
  type Resource,
  SubscribeRequestSchema,
  UnsubscribeRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { AgentdError } from '../../protocol/errors.ts';
import { VERSIONS } from '../../protocol/versions.ts';
import { RPC } from '../surface/http-reply.ts';
import type { SessionContext } from '../surface/mcp-endpoint.ts';
import { SubscriptionLimit } from '../surface/resource-hub.ts';
import { RpcError } from '../surface/rpc-error.ts';
import type { InboxDocument } from './document-index.ts';
import { etagOf, mimeTypeFor } from './document-read.ts';
import { documentPath, INBOX_SCHEME } from './document-uri.ts';
import type { DocumentPage, Inbox } from './inbox.ts';
import { callInboxTool, decodeCursor, encodeCursor, inboxToolList } from './inbox-tools.ts';

const LIST_PAGE = 1000;

/** The MCP server of one session of an inbox. */
export function inboxServer(inbox: Inbox, session: SessionContext): Server {
  const server = new Server(
    { name: 'agentd-inbox', version: VERSIONS.contract_version },
    { capabilities: { tools: {}, resources: { subscribe: true, listChanged: true } } },
  );
  const tools = inboxToolList();
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools }));
  server.setRequestHandler(CallToolRequestSchema, ({ params }) => callInboxTool(inbox, params));
  server.setRequestHandler(ListResourcesRequestSchema, ({ params }) =>
    answering(() => {
      const page = inbox.page(decodeCursor(params?.cursor), LIST_PAGE);
      return {
        resources: page.documents.map(describeResource),
        ...(page.next === null ? {} : { nextCursor: encodeCursor(page.next) }),
      };
    }),
  );
  server.setRequestHandler(ListResourceTemplatesRequestSchema, () => ({
    resourceTemplates: [{ name: 'document', uriTemplate: `${INBOX_SCHEME}{+path}` }],
  }));
  server.setRequestHandler(ReadResourceRequestSchema, ({ params }) =>
    answering(async () => ({ contents: [resourceContents(await inbox.readWhole(params.uri))] })),
  );
  server.setRequestHandler(SubscribeRequestSchema, ({ params }) =>
    answering(() => {
      // A document need not exist yet: its appearing is what a subscriber may be waiting for.
      if (documentPath(params.uri) === null) {
        throw new AgentdError('DOCUMENT_UNKNOWN', `${params.uri} cannot be the URI of a document`);
      }
      session.subscribe(params.uri);
      return {};
    }),
  );
  server.setRequestHandler(UnsubscribeRequestSchema, ({ params }) => {
    session.unsubscribe(params.uri);
    return {};
  });
  return server;
}

function describeResource(document: InboxDocument): Resource {
  const mimeType = mimeTypeFor(document);
  return {
    uri: document.uri,
    name: document.path,
    size: document.state.size,
    ...(mimeType === null ? {} : { mimeType }),
    annotations: { lastModified: new Date(document.state.mtimeMs).toISOString() },
    _meta: { size: document.state.size, etag: etagOf(document.state) },
  };
}

type ResourceContents =
  | { uri: string; mimeType: string; text: string; _meta: Record<string, unknown> }
  | { uri: string; mimeType: string; blob: string; _meta: Record<string, unknown> };

function resourceContents(page: DocumentPage): ResourceContents {
  const { document, slice, mimeType, content } = page;
  const common = {
    uri: document.uri,
    mimeType: mimeType ?? 'application/octet-stream',
    _meta: {
      size: slice.state.size,
      etag: etagOf(slice.state),
      lastModified: new Date(slice.state.mtimeMs).toISOString(),
    },
  };
  return page.encoding === 'utf-8' ? { ...common, text: content } : { ...common, blob: content };
}

/** Turns our errors into JSON-RPC errors that say the same. */
async function answering<T>(answer: () => T | Promise<T>): Promise<T> {
  try {
    return await answer();
  } catch (error) {
    if (error instanceof SubscriptionLimit) throw new RpcError(RPC.INVALID_PARAMS, error.message);
    if (!(error instanceof AgentdError)) throw error;
    const code = error.code === 'DOCUMENT_UNKNOWN' ? RPC.RESOURCE_NOT_FOUND : RPC.TRANSPORT;
    throw new RpcError(code, error.message, { code: error.code, kind: error.kind, remedy: error.remedy });
  }
}
