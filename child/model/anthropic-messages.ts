import {
  argumentsOf,
  isRecord,
  type Message,
  type ModelAnswer,
  type StopReason,
  type TokenUsage,
  type ToolCall,
} from './model.ts';
import { countOf, textOf, type WireFormat, wireName } from './wire.ts';

/** The version of the Messages API this is written against. */
const API_VERSION = '2023-06-01';
/** The API wants an upper bound for the answer with every request, tokens. */
const MAX_ANSWER_TOKENS = 8192;

type Block = Record<string, unknown>;

/** The Messages API of Anthropic. */
export const anthropicMessages: WireFormat = {
  headers: (token) => ({
    'anthropic-version': API_VERSION,
    ...(token === undefined ? {} : { 'x-api-key': token }),
  }),

  body: (request, model) => ({
    ...(model === undefined ? {} : { model }),
    max_tokens: Math.max(1, Math.min(MAX_ANSWER_TOKENS, request.tokensLeft)),
    system: request.system,
    messages: alternate(request.messages),
    ...(request.tools.length === 0
      ? {}
      : {
          tools: request.tools.map((tool) => ({
            name: tool.name,
            description: tool.description,
            input_schema: { type: 'object', ...tool.input_schema },
          })),
        }),
  }),

  read: (value, model) => {
    if (!isRecord(value) || !Array.isArray(value.content)) return null;
    const blocks = value.content.filter(isRecord);
    const text = blocks.map((block) => (block.type === 'text' ? textOf(block.text) : '')).join('');
    const calls: ToolCall[] = blocks
      .filter((block) => block.type === 'tool_use')
      .map((block) => ({
        id: textOf(block.id),
        name: textOf(block.name),
        arguments: argumentsOf(block.input),
      }));
    const answer: ModelAnswer = {
      text,
      calls,
      stop: stopOf(value.stop_reason, calls.length, text),
      usage: usageOf(value.usage),
      model: typeof value.model === 'string' ? value.model : (model ?? 'default'),
    };
    return answer;
  },
};

/** The API wants user and assistant to take turns, and tool results in the user's. */
function alternate(messages: readonly Message[]): { role: string; content: Block[] }[] {
  const turns: { role: string; content: Block[] }[] = [];
  for (const message of messages) {
    const role = message.role === 'assistant' ? 'assistant' : 'user';
    const blocks = blocksOf(message);
    if (blocks.length === 0) continue;
    const last = turns.at(-1);
    if (last?.role === role) last.content.push(...blocks);
    else turns.push({ role, content: blocks });
  }
  return turns;
}

function blocksOf(message: Message): Block[] {
  switch (message.role) {
    case 'user':
      return [{ type: 'text', text: message.text }];
    case 'assistant':
      return [
        // An empty text block is refused by the API.
        ...(message.text.trim() === '' ? [] : [{ type: 'text', text: message.text }]),
        ...message.calls.map((call) => ({
          type: 'tool_use',
          id: call.id,
          name: wireName(call.name),
          input: call.arguments.valid ? call.arguments.value : {},
        })),
      ];
    case 'tool':
      return [
        {
          type: 'tool_result',
          tool_use_id: message.callId,
          content: message.text === '' ? '(empty)' : message.text,
          ...(message.isError ? { is_error: true } : {}),
        },
      ];
  }
}

function stopOf(reason: unknown, calls: number, text: string): StopReason {
  if (calls > 0) return 'calls';
  if (reason === 'refusal') return 'declined';
  if (reason === 'max_tokens' || reason === 'pause_turn' || text.trim() === '') return 'cut_off';
  return 'end';
}

function usageOf(value: unknown): TokenUsage | null {
  if (!isRecord(value)) return null;
  const fresh = countOf(value.input_tokens);
  const tokensOut = countOf(value.output_tokens);
  if (fresh === null && tokensOut === null) return null;
  const cached =
    (countOf(value.cache_creation_input_tokens) ?? 0) + (countOf(value.cache_read_input_tokens) ?? 0);
  return { tokensIn: (fresh ?? 0) + cached, tokensOut: tokensOut ?? 0 };
}
