import { anthropicMessages } from './anthropic-messages.ts';
import { openAiChat } from './openai-chat.ts';
import type { WireFormat } from './wire.ts';

/** One entry of the endpoint list, resolved. */
export interface Endpoint {
  readonly url: URL;
  readonly token: string | undefined;
  readonly format: WireFormat;
  /** For messages: no credentials, no query. */
  readonly label: string;
}

/**
 * Chooses the API by the path of the URL: `…/messages` is the Messages API, everything else chat
 * completions. A path that names neither is taken as the base of the API.
 */
export function resolveEndpoint(entry: {
  readonly url: string;
  readonly token?: string | undefined;
}): Endpoint {
  const url = new URL(entry.url);
  const path = url.pathname.replace(/\/+$/, '');
  const messages = path.endsWith('/messages');
  if (!messages && !path.endsWith('/chat/completions')) {
    url.pathname = path === '' ? '/v1/chat/completions' : `${path}/chat/completions`;
  }
  return {
    url,
    token: entry.token,
    format: messages ? anthropicMessages : openAiChat,
    label: `${url.origin}${url.pathname}`,
  };
}
