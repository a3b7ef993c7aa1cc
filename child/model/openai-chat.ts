import {
  isRecord,
  type Message,
  type ModelAnswer,
  type ModelRequest,
  parseArguments,
  type StopReason,
  type TokenUsage,
  type ToolCall,
} from './model.ts';
import { countOf, textOf, type WireFormat, wireName } from './wire.ts';

/** Chat completions, as OpenAI defined them and most servers speak them. */
export const openAiChat: WireFormat = {
  headers: (token) => (token === undefined ? {} : { authorization: `Bearer ${token}` }),

  body: (request, model) => ({
    ...(model === undefined ? {} : { model }),
    messages: [{ role: 'system', content: request.system }, ...request.messages.map(messageOf)],
    ...(request.tools.length === 0 ? {} : { tools: toolsOf(request) }),
    stream: false,
  }),

  read: (value, model) => {
    if (!isRecord(value) || !Array.isArray(value.choices)) return null;
    const answered = typeof value.model === 'string' ? value.model : (model ?? 'default');
    const choice: unknown = value.choices[0];
    const message = isRecord(choice) && isRecord(choice.message) ? choice.message : {};
    const calls = callsOf(message.tool_calls);
    const refusal = textOf(message.refusal);
    const text = contentText(message.content);
    const answer: ModelAnswer = {
      text: text === '' ? refusal : text,
      calls,
      stop: stopOf(isRecord(choice) ? choice.finish_reason : undefined, calls.length, text, refusal),
      usage: usageOf(value.usage),
      model: answered,
    };
    return answer;
  },
};

function messageOf(message: Message): Record<string, unknown> {
  switch (message.role) {
    case 'user':
      return { role: 'user', content: message.text };
    case 'assistant':
      return {
        role: 'assistant',
        content: message.text,
        ...(message.calls.length === 0
          ? {}
          : {
              tool_calls: message.calls.map((call) => ({
                id: call.id,
                type: 'function',
                function: {
                  name: wireName(call.name),
                  arguments: JSON.stringify(call.arguments.valid ? call.arguments.value : {}),
                },
              })),
            }),
      };
    case 'tool':
      return {
        role: 'tool',
        tool_call_id: message.callId,
        content: message.isError ? `Error: ${message.text}` : message.text,
      };
  }
}

function toolsOf(request: ModelRequest): unknown[] {
  return request.tools.map((tool) => ({
    type: 'function',
    function: { name: tool.name, description: tool.description, parameters: tool.input_schema },
  }));
}

function callsOf(value: unknown): ToolCall[] {
  if (!Array.isArray(value)) return [];
  return value.filter(isRecord).map((entry) => {
    const target = isRecord(entry.function) ? entry.function : {};
    const written = target.arguments;
    return {
      id: textOf(entry.id),
      name: textOf(target.name),
      // Some servers send the object itself where the API says text.
      arguments: isRecord(written) ? { valid: true, value: written } : parseArguments(textOf(written)),
    };
  });
}

/** Content is text or, with some servers, a list of parts. */
function contentText(value: unknown): string {
  if (!Array.isArray(value)) return textOf(value);
  return value.map((part) => (isRecord(part) ? textOf(part.text) : '')).join('');
}

function stopOf(reason: unknown, calls: number, text: string, refusal: string): StopReason {
  if (calls > 0) return 'calls';
  if (reason === 'content_filter' || (refusal !== '' && text === '')) return 'declined';
  if (reason === 'length' || text.trim() === '') return 'cut_off';
  return 'end';
}

function usageOf(value: unknown): TokenUsage | null {
  if (!isRecord(value)) return null;
  const tokensIn = countOf(value.prompt_tokens);
  const tokensOut = countOf(value.completion_tokens);
  if (tokensIn === null && tokensOut === null) return null;
  return { tokensIn: tokensIn ?? 0, tokensOut: tokensOut ?? 0 };
}
