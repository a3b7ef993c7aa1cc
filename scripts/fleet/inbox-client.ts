import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

/** One filed result, as the inbox lists it. */
export interface FiledResult {
  readonly uri: string;
  readonly idempotency_key: string;
  readonly run_id?: string;
  readonly instance?: string;
}

/** Reads what an inbox holds, over MCP like everybody else. */
export class InboxClient {
  private constructor(private readonly client: Client) {}

  static async connect(url: string): Promise<InboxClient> {
    const client = new Client({ name: 'fleet', version: '1' });
    await client.connect(new StreamableHTTPClientTransport(new URL(url)));
    return new InboxClient(client);
  }

  /** URIs of every document. */
  async documents(): Promise<string[]> {
    const found = await this.pages<{ uri: string }>('list', 'documents');
    return found.map(({ uri }) => uri);
  }

  async results(): Promise<FiledResult[]> {
    return this.pages<FiledResult>('results', 'results');
  }

  /** How many documents have at least one result. */
  async finished(): Promise<number> {
    const page = await this.call('results', {});
    return Number(page.documents);
  }

  async close(): Promise<void> {
    await this.client.close();
  }

  private async pages<T>(tool: string, field: string): Promise<T[]> {
    const all: T[] = [];
    let cursor: unknown;
    do {
      const page = await this.call(tool, cursor === undefined ? {} : { cursor });
      all.push(...(page[field] as T[]));
      cursor = page.next_cursor;
    } while (cursor !== undefined);
    return all;
  }

  private async call(name: string, args: Record<string, unknown>): Promise<Record<string, unknown>> {
    const result = await this.client.callTool({ name, arguments: args });
    if (result.isError === true) throw new Error(`inbox ${name}: ${JSON.stringify(result.content)}`);
    return result.structuredContent as Record<string, unknown>;
  }
}

/** What a finished inbox looks like. */
export interface Tally {
  readonly items: number;
  /** Results beyond the first of a document. */
  readonly duplicates: number;
  /** URIs without a result. */
  readonly lost: readonly string[];
}

export function tally(documents: readonly string[], results: readonly FiledResult[]): Tally {
  const done = new Set(results.map(({ uri }) => uri));
  return {
    items: documents.length,
    duplicates: results.length - done.size,
    lost: documents.filter((uri) => !done.has(uri)),
  };
}
