import { AgentdError } from '../../protocol/errors.ts';
import { runProgram } from '../../supervisor/cli/program.ts';
import { fakeHost } from './fake-host.ts';

/** How a command line ended, as main.ts would show it. */
export interface VerbEnded {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command line in this process, for verbs that end by themselves. */
export async function runVerb(
  args: readonly string[],
  options: { readonly cwd?: string; readonly env?: NodeJS.ProcessEnv } = {},
): Promise<VerbEnded> {
  const host = fakeHost(options);
  try {
    const code = await runProgram(args, host);
    return { code, stdout: host.out(), stderr: host.err() };
  } catch (error) {
    if (!(error instanceof AgentdError)) throw error;
    return {
      code: error.exitCode,
      stdout: host.out(),
      stderr: `agentd: ${error.message}\n  ${error.remedy}\n`,
    };
  }
}
