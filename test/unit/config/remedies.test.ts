import { describe, expect, it } from 'vitest';
import { type Given, RUNNABLE, refusal } from '../../helpers/load-config.ts';

const reactive = { ...RUNNABLE, '--mode': 'reactive', '--mcp': ['s=stdio:x'], '--subscribe': ['a://b'] };

describe('a refusal says what to change', () => {
  it.each([
    [
      'one of two instructions',
      { flags: { ...RUNNABLE, '--instruction-file': 'x.md' }, files: { 'x.md': 'x' } },
      /^Drop --instruction-file to use the text, or --instruction \(or the text after `agentd run`\) to use the file\.$/,
    ],
    [
      'one of two instructions of a file',
      {
        flags: { '--intelligence': 'script:final', '--config': ['a.yaml'] },
        files: { 'a.yaml': 'agent: {instruction: x, instruction_file: x.md}', 'x.md': 'x' },
      },
      /^Drop agent\.instruction_file \(a\.yaml:1:\d+\) to use the text, or agent\.instruction \(a\.yaml:1:\d+\) to use the file\.$/,
    ],
    [
      'a missing instruction file',
      { flags: { '--intelligence': 'script:final', '--instruction-file': '/gone.md' } },
      /^Put the instruction into \/gone\.md, or correct the path in --instruction-file\.$/,
    ],
    [
      'a missing model script',
      { flags: { ...RUNNABLE, '--intelligence': 'script:/gone.yaml' } },
      /^Put a playbook at \/gone\.yaml, or correct the path after script: in --intelligence; script:final needs no file\.$/,
    ],
    [
      'who assigns to a standby member',
      { flags: { ...reactive, '--standby': true, '--assign-from': 's' } },
      /^Give --assign-from SERVER:URI, such as coord:work:\/\/pending, and declare SERVER with --mcp\.$/,
    ],
  ] as readonly [string, Given, RegExp][])('%s', async (_name, given, remedy) => {
    expect((await refusal(given)).remedy).toMatch(remedy);
  });
});
