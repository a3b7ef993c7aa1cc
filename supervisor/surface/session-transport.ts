import type { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import {
  isJSONRPCErrorResponse,
  isJSONRPCResultResponse,
  type JSONRPCMessage,
  type MessageExtraInfo,
} from '@modelcontextprotocol/sdk/types.js';

/** The session behind a transport. */
export interface TransportOwner {
  readonly sessionId: string;
  /** Sends what answers no call. */
  push(message: JSONRPCMessage): void;
  /** The transport closed. */
  closed(): void;
}

/** Gives the SDK one transport out of two: answers to calls, and everything else on the stream. */
export class SessionTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: <T extends JSONRPCMessage>(message: T, extra?: MessageExtraInfo) => void;

  constructor(
    private readonly inner: WebStandardStreamableHTTPServerTransport,
    private readonly session: TransportOwner,
  ) {}

  get sessionId(): string {
    return this.session.sessionId;
  }

  async start(): Promise<void> {
    this.inner.onmessage = (message, extra) => this.onmessage?.(message, extra);
    this.inner.onerror = (error) => this.onerror?.(error);
    this.inner.onclose = () => {
      this.session.closed();
      this.onclose?.();
    };
    await this.inner.start();
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const answers = isJSONRPCResultResponse(message) || isJSONRPCErrorResponse(message);
    if (answers) await this.inner.send(message);
    else this.session.push(message);
  }

  close(): Promise<void> {
    return this.inner.close();
  }
}
