import { missingFeature } from '../config/implemented.ts';
import { keyDescriptions } from '../config/schema-walk.ts';
import type { EngineFlag } from './engine-command.ts';

/** The text of a flag in `--help`: what the schema says of its key, and its variable. */
export function describeFlag(flag: EngineFlag): string {
  const text = 'help' in flag ? flag.help : (keyDescriptions().get(flag.key) ?? '');
  const [variable] = flag.env ?? [];
  const missing = 'key' in flag && missingFeature(flag.key) !== null ? ' (not in this build)' : '';
  // The flag takes a reference only: everybody on the machine can read a command line.
  const secret = 'form' in flag && flag.form === 'secret';
  const holds = variable === undefined ? '' : '; the variable holds the credential itself';
  const form = secret ? ` Given as {{secret:VARIABLE}} or {{secret-file:PATH}}${holds}.` : '';
  return `${text}${form}${missing}${variable === undefined ? '' : ` [${variable}]`}`;
}
