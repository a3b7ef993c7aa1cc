import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type Inspection, inspectionArguments } from './inspection.ts';

/** The child program beside this bundle, or the built one when the sources run as they are. */
export function childProgram(): string {
  const beside = fileURLToPath(new URL('./child.js', import.meta.url));
  // Up from the folder of these sources.
  const built = fileURLToPath(new URL('../../dist/child.js', import.meta.url));
  return existsSync(beside) ? beside : built;
}

/** What starts a child of this build. */
export function childCommand(inspect: Inspection | null): readonly [string, ...string[]] {
  return [process.execPath, ...inspectionArguments(inspect), childProgram()];
}
