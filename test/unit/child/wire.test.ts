import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { anthropicMessages } from '../../../child/model/anthropic-messages.ts';
import { resolveEndpoint } from '../../../child/model/endpoint.ts';
import type { Message, ModelRequest } from '../../../child/model/model.ts';
import { openAiChat } from '../../../child/model/openai-chat.ts';

const messages: readonly Message[] = [
  { role: 'user', text: 'task' },
  {
    role: 'assistant',
    text: '',
    calls: [
      { id: '1', name: 'a', arguments: { valid: true, value: { x: 1 } } },
      { id: '2', name: 'no such/tool!', arguments: { valid: false, reason: 'broken' } },
    ],
  },
  { role: 'tool', callId: '1', name: 'a', text: '', isError: false },
  { role: 'tool', callId: '2', name: 'no such/tool!', text: 'broken', isError: true },
  { role: 'user', text: 'go on' },
];
const request: ModelRequest = {
  system: 'sys',
  messages,
  tools: [{ name: 'a', description: 'd', input_schema: { properties: {} } }],
  task: { sequence: 1, uri: '', server: '' },
  tokensLeft: 100,
};

describe('model endpoints', () => {
  test.each([
    ['https://h/v1/messages', 'https://h/v1/messages', anthropicMessages],
    ['https://h/proxy/v1/messages/', 'https://h/proxy/v1/messages/', anthropicMessages],
    ['https://h/v1/chat/completions', 'https://h/v1/chat/completions', openAiChat],
    ['https://h/v1', 'https://h/v1/chat/completions', openAiChat],
    ['http://127.0.0.1:1234', 'http://127.0.0.1:1234/v1/chat/completions', openAiChat],
    ['https://h/openai/v1/?key=1', 'https://h/openai/v1/chat/completions?key=1', openAiChat],
  ])('%s is asked at %s', (url, resolved, format) => {
    const endpoint = resolveEndpoint({ url });
    expect(endpoint.url.href).toBe(resolved);
    expect(endpoint.format).toBe(format);
    expect(endpoint.label).not.toContain('?');
  });
});

describe('chat completions', () => {
  test('a conversation is written as the API wants it', () => {
    expect(openAiChat.body(request, 'm')).toEqual({
      model: 'm',
      stream: false,
      messages: [
        { role: 'system', content: 'sys' },
        { role: 'user', content: 'task' },
        {
          role: 'assistant',
          content: '',
          tool_calls: [
            { id: '1', type: 'function', function: { name: 'a', arguments: '{"x":1}' } },
            { id: '2', type: 'function', function: { name: 'no_such_tool_', arguments: '{}' } },
          ],
        },
        { role: 'tool', tool_call_id: '1', content: '' },
        { role: 'tool', tool_call_id: '2', content: 'Error: broken' },
        { role: 'user', content: 'go on' },
      ],
      tools: [
        { type: 'function', function: { name: 'a', description: 'd', parameters: { properties: {} } } },
      ],
    });
    expect(openAiChat.body({ ...request, tools: [] }, undefined)).not.toHaveProperty('tools');
    expect(openAiChat.headers('k')).toEqual({ authorization: 'Bearer k' });
    expect(openAiChat.headers(undefined)).toEqual({});
  });

  const chat = (message: unknown, more: object = {}, finish = 'stop') =>
    openAiChat.read({ choices: [{ message, finish_reason: finish }], ...more }, 'm');

  test.each([
    ['text', { content: 'hi' }, 'stop', { text: 'hi', stop: 'end' }],
    [
      'parts',
      {
        content: [
          { type: 'text', text: 'h' },
          { type: 'text', text: 'i' },
        ],
      },
      'stop',
      { text: 'hi', stop: 'end' },
    ],
    ['a length limit', { content: 'hi' }, 'length', { text: 'hi', stop: 'cut_off' }],
    ['nothing', { content: null }, 'stop', { text: '', stop: 'cut_off' }],
    ['a filter', { content: '' }, 'content_filter', { text: '', stop: 'declined' }],
    ['a refusal', { content: null, refusal: 'no' }, 'stop', { text: 'no', stop: 'declined' }],
    ['no message', undefined, 'stop', { text: '', stop: 'cut_off', calls: [] }],
  ])('reads %s', (_what, message, finish, expected) => {
    expect(chat(message, {}, finish)).toMatchObject({ model: 'm', usage: null, ...expected });
  });

  test('reads calls, with arguments as text, as an object, absent or broken', () => {
    const made = (written: unknown) => ({ id: 'i', function: { name: 'a', arguments: written } });
    const answer = chat({
      tool_calls: [made('{"x":1}'), made({ x: 2 }), made(''), made('{"x'), made('[1]'), 'odd', {}],
    });
    expect(answer?.stop).toBe('calls');
    expect(answer?.calls.map((call) => call.arguments)).toEqual([
      { valid: true, value: { x: 1 } },
      { valid: true, value: { x: 2 } },
      { valid: true, value: {} },
      { valid: false, reason: 'the arguments are not valid JSON: {"x' },
      { valid: false, reason: 'the arguments must be a JSON object, not an array' },
      { valid: true, value: {} },
    ]);
  });

  test('empty choices are an answer that says nothing; another shape is no answer', () => {
    expect(openAiChat.read({ choices: [] }, 'm')).toMatchObject({ text: '', calls: [], stop: 'cut_off' });
    expect(openAiChat.read({ error: 'x' }, 'm')).toBeNull();
  });

  test('usage is taken as reported, and nonsense is not', () => {
    expect(chat({}, { usage: { prompt_tokens: 3, completion_tokens: 4 } })?.usage).toEqual({
      tokensIn: 3,
      tokensOut: 4,
    });
    expect(chat({}, { usage: { prompt_tokens: -1, completion_tokens: 'x' } })?.usage).toBeNull();
    expect(chat({}, { usage: null })?.usage).toBeNull();
  });
});

describe('the Messages API', () => {
  test('turns alternate, results and what follows share one, empty text is left out', () => {
    expect(anthropicMessages.body(request, 'm')).toEqual({
      model: 'm',
      max_tokens: 100,
      system: 'sys',
      messages: [
        { role: 'user', content: [{ type: 'text', text: 'task' }] },
        {
          role: 'assistant',
          content: [
            { type: 'tool_use', id: '1', name: 'a', input: { x: 1 } },
            { type: 'tool_use', id: '2', name: 'no_such_tool_', input: {} },
          ],
        },
        {
          role: 'user',
          content: [
            { type: 'tool_result', tool_use_id: '1', content: '(empty)' },
            { type: 'tool_result', tool_use_id: '2', content: 'broken', is_error: true },
            { type: 'text', text: 'go on' },
          ],
        },
      ],
      tools: [{ name: 'a', description: 'd', input_schema: { type: 'object', properties: {} } }],
    });
    expect(anthropicMessages.headers('k')).toEqual({ 'anthropic-version': '2023-06-01', 'x-api-key': 'k' });
  });

  const read = (content: unknown[], reason: string, usage?: unknown) =>
    anthropicMessages.read({ content, stop_reason: reason, usage }, 'm');

  test.each([
    ['end_turn', 'end'],
    ['stop_sequence', 'end'],
    ['max_tokens', 'cut_off'],
    ['pause_turn', 'cut_off'],
    ['refusal', 'declined'],
  ])('stop reason %s is %s', (reason, stop) => {
    expect(read([{ type: 'text', text: 'hi' }], reason)).toMatchObject({ text: 'hi', stop });
  });

  test('reads calls and the usage of a cached prompt', () => {
    const usage = {
      input_tokens: 1,
      cache_creation_input_tokens: 2,
      cache_read_input_tokens: 3,
      output_tokens: 4,
    };
    const answer = read(
      [{ type: 'thinking' }, { type: 'tool_use', id: 'i', name: 'a', input: 'x' }, null],
      'tool_use',
      usage,
    );
    expect(answer).toMatchObject({ stop: 'calls', usage: { tokensIn: 6, tokensOut: 4 } });
    expect(answer?.calls[0]?.arguments).toEqual({
      valid: false,
      reason: 'the arguments must be a JSON object, not string',
    });
  });
});

describe('answers of any shape', () => {
  test('no JSON value makes a reader throw', () => {
    const shaped = fc.record({
      choices: fc.array(fc.record({ message: fc.jsonValue(), finish_reason: fc.jsonValue() })),
      content: fc.array(fc.jsonValue()),
      usage: fc.jsonValue(),
    });
    fc.assert(
      fc.property(fc.oneof(fc.jsonValue(), shaped), (value) => {
        for (const format of [openAiChat, anthropicMessages]) {
          const answer = format.read(value, undefined);
          if (answer !== null) expect(typeof answer.text).toBe('string');
        }
      }),
    );
  });
});
