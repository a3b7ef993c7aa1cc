import type { ModelTool } from '../model/model.ts';

/** The one tool every run has and the child answers itself: the way to end as `refused`. */
export const TASK_REFUSE = 'task_refuse';

const handle = { type: 'string', description: 'The handle subagent_spawn returned.' };

const SELF_TOOLS: Readonly<Record<string, ModelTool>> = {
  [TASK_REFUSE]: {
    name: TASK_REFUSE,
    description:
      'Ends the task as impossible. Use it only when you have worked on the task and concluded that it cannot be done.',
    input_schema: {
      type: 'object',
      properties: { reason: { type: 'string', description: 'Why the task cannot be done.' } },
      required: ['reason'],
    },
  },
  subagent_spawn: {
    name: 'subagent_spawn',
    description:
      'Gives a task to a subagent. `sync` waits for its result; `async` and `detach` return a handle at once. The request may be refused: then do the work yourself, or less of it.',
    input_schema: {
      type: 'object',
      properties: {
        instruction: { type: 'string', description: 'The whole task; the subagent sees nothing else.' },
        tools: {
          type: 'array',
          items: { type: 'string' },
          description: 'Names of your own tools that it may use. Default: all of them.',
        },
        disposition: { type: 'string', enum: ['sync', 'async', 'detach'] },
        max_steps: { type: 'integer', minimum: 1 },
        max_tokens: { type: 'integer', minimum: 1 },
        deadline_ms: { type: 'integer', minimum: 1 },
        output_contract: { type: 'object', description: 'A JSON Schema its answer must satisfy.' },
      },
      required: ['instruction'],
    },
  },
  subagent_send: {
    name: 'subagent_send',
    description: 'Sends a message to a subagent that is still running.',
    input_schema: {
      type: 'object',
      properties: { handle, message: { type: 'string' } },
      required: ['handle', 'message'],
    },
  },
  subagent_status: {
    name: 'subagent_status',
    description: 'Reports how a subagent is doing, and its result when it has ended.',
    input_schema: { type: 'object', properties: { handle }, required: ['handle'] },
  },
  subagent_cancel: {
    name: 'subagent_cancel',
    description: 'Stops a subagent.',
    input_schema: {
      type: 'object',
      properties: { handle, reason: { type: 'string' } },
      required: ['handle'],
    },
  },
};

/** The self-tools of a run: `task_refuse`, and those its supervisor answers. Unknown names are left out. */
export function selfTools(names: readonly string[]): ModelTool[] {
  return [TASK_REFUSE, ...names.filter((name) => name !== TASK_REFUSE)].flatMap((name) => {
    const tool = Object.hasOwn(SELF_TOOLS, name) ? SELF_TOOLS[name] : undefined;
    return tool === undefined ? [] : [tool];
  });
}
