import type { Tool } from '@modelcontextprotocol/sdk/types.js';
import { errorMessage } from '../../protocol/errors.ts';
import type { Log } from '../telemetry/log.ts';
import type { Session } from './session.ts';

/** The tools of one server, as last listed. */
export class ToolList {
  tools: readonly Tool[] = [];
  private phase: 'idle' | 'running' | 'again' = 'idle';

  constructor(
    private readonly server: string,
    private readonly log: Log,
    private readonly timeoutMs: number,
  ) {}

  /** @throws AgentdError when the server cannot list them */
  async load(session: Session): Promise<void> {
    this.tools = await session.listTools({ timeoutMs: this.timeoutMs });
  }

  /** Lists again after `tools/list_changed`; a burst causes one listing after the one that runs. */
  async refresh(session: Session): Promise<void> {
    if (this.phase !== 'idle') {
      this.phase = 'again';
      return;
    }
    do {
      this.phase = 'running';
      try {
        await this.load(session);
      } catch (error) {
        const msg = `tools could not be listed again: ${errorMessage(error)}`;
        this.log.warn('mcp.connect', { server: this.server, msg });
      }
    } while (this.wantsAgain());
    this.phase = 'idle';
  }

  private wantsAgain(): boolean {
    return this.phase === 'again';
  }
}
