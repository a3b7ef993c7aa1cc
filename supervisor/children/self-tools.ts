import { z } from 'zod';

/** The self-tools a supervisor answers, as their children see them. */
export const SUBAGENT_TOOLS = [
  'subagent_spawn',
  'subagent_send',
  'subagent_status',
  'subagent_cancel',
] as const;

const spawn = z.object({
  instruction: z.string().min(1),
  tools: z.array(z.string()).max(256).nullish(),
  disposition: z.enum(['sync', 'async', 'detach']).nullish(),
  max_steps: z.number().int().min(1).nullish(),
  max_tokens: z.number().int().min(1).nullish(),
  deadline_ms: z.number().min(1).nullish(),
  output_contract: z.record(z.string(), z.unknown()).nullish(),
});
const send = z.object({ handle: z.string(), message: z.string().min(1).max(65_536) });
const status = z.object({ handle: z.string() });
const cancel = z.object({ handle: z.string(), reason: z.string().max(1_000).nullish() });

export type SelfCall =
  | { readonly tool: 'subagent_spawn'; readonly args: z.infer<typeof spawn> }
  | { readonly tool: 'subagent_send'; readonly args: z.infer<typeof send> }
  | { readonly tool: 'subagent_status'; readonly args: z.infer<typeof status> }
  | { readonly tool: 'subagent_cancel'; readonly args: z.infer<typeof cancel> };

/** Reads a request for a self-tool, or says what is wrong with it in words for the model. */
export function parseSelfCall(name: string, args: Record<string, unknown>): SelfCall | string {
  switch (name) {
    case 'subagent_spawn':
      return read(spawn, args, (value) => ({ tool: name, args: value }));
    case 'subagent_send':
      return read(send, args, (value) => ({ tool: name, args: value }));
    case 'subagent_status':
      return read(status, args, (value) => ({ tool: name, args: value }));
    case 'subagent_cancel':
      return read(cancel, args, (value) => ({ tool: name, args: value }));
    default:
      return `there is no self-tool ${name}`;
  }
}

function read<T>(schema: z.ZodType<T>, args: unknown, make: (value: T) => SelfCall): SelfCall | string {
  const parsed = schema.safeParse(args);
  if (parsed.success) return make(parsed.data);
  const [issue] = parsed.error.issues;
  return `the arguments are not acceptable: ${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}`.trim();
}
