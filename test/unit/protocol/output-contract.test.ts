import { describe, expect, test } from 'vitest';
import { compileOutputContract } from '../../../protocol/output-contract.ts';

const contract = compileOutputContract({
  type: 'object',
  properties: { title: { type: 'string', minLength: 1 }, pages: { type: 'integer', minimum: 1 } },
  required: ['title', 'pages'],
  additionalProperties: false,
});

describe('output contract', () => {
  test('an answer that satisfies it comes back as compact JSON, with or without a fence', () => {
    const json = '{"title":"x","pages":2}';
    expect(contract.check('{ "title": "x",\n "pages": 2 }')).toEqual({ ok: true, json });
    expect(contract.check(`\n\`\`\`json\n${json}\n\`\`\`\n`)).toEqual({ ok: true, json });
  });

  test.each([
    ['prose', 'the answer is not JSON'],
    ['', 'the answer is not JSON'],
    ['{"title":"x"}', 'at /pages: '],
    ['{"title":"x","pages":0}', 'at /pages: '],
    ['{"title":"x","pages":1,"more":1}', 'more'],
    ['[]', 'at /: '],
  ])('%j fails with a sentence the model can act on', (answer, problem) => {
    const checked = contract.check(answer);
    expect(checked.ok).toBe(false);
    expect(checked.ok ? '' : checked.problem).toContain(problem);
  });

  test('at most five problems are named', () => {
    const many = compileOutputContract({
      type: 'object',
      properties: Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`k${n}`, { type: 'string' }])),
      required: Array.from({ length: 20 }, (_, n) => `k${n}`),
    });
    const checked = many.check('{}');
    expect(checked.ok ? [] : checked.problem.split('; ')).toHaveLength(5);
  });

  test('a keyword that cannot be checked is refused, not ignored', () => {
    expect(() => compileOutputContract({ dependentSchemas: { a: {} }, if: { type: 'string' } })).toThrowError(
      expect.objectContaining({ code: 'OUTPUT_CONTRACT_INVALID' }),
    );
  });
});
