import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  ResourceListChangedNotificationSchema,
  ResourceUpdatedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';

/** A client of the official SDK, with what it was told kept for a test to look at. */
export interface TestClient {
  readonly client: Client;
  readonly transport: StreamableHTTPClientTransport;
  /** URIs of `resources/updated`, in order. */
  readonly updated: string[];
  /** How often the list changed. */
  readonly listChanges: () => number;
  close(): Promise<void>;
}

/** Connects to the MCP endpoint at `url`. Headers are sent with every request. */
export async function connectSdkClient(
  url: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<TestClient> {
  const client = new Client({ name: 'test', version: '1' });
  const updated: string[] = [];
  let lists = 0;
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => {
    updated.push(params.uri);
  });
  client.setNotificationHandler(ResourceListChangedNotificationSchema, () => {
    lists += 1;
  });
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers: { ...headers } },
  });
  await client.connect(transport);
  return { client, transport, updated, listChanges: () => lists, close: () => client.close() };
}

/** The text of a tool's answer. */
export function toolText(answer: Awaited<ReturnType<Client['callTool']>>): string {
  const content = answer.content as readonly { readonly type: string; readonly text?: string }[];
  return content.map((part) => part.text ?? '').join('\n');
}
