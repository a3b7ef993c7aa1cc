import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { claimKey } from '../../protocol/claim-key.ts';

/** Asks a coordination server how items fare, connecting for each question: it may have been restarted. */
export class WorkStats {
  constructor(
    private readonly url: string,
    private readonly route: string,
  ) {}

  /** Those of `uris` that are neither done nor given up; all of them when the server cannot be asked. */
  async open(uris: readonly string[]): Promise<string[]> {
    const client = new Client({ name: 'fleet', version: '1' });
    try {
      await client.connect(new StreamableHTTPClientTransport(new URL(this.url)));
      const open: string[] = [];
      for (const uri of uris) {
        const found = await client.callTool({
          name: 'work.result',
          arguments: { work_id: claimKey(uri, this.route) },
        });
        const { state } = (found.structuredContent ?? {}) as { state?: string };
        if (state !== 'done' && state !== 'dead_letter') open.push(uri);
      }
      return open;
    } catch {
      return [...uris];
    } finally {
      await client.close().catch(() => undefined);
    }
  }
}
