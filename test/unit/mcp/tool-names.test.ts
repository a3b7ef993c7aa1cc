import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { modelNames } from '../../../supervisor/mcp/tool-names.ts';

describe('the names of tools for the model', () => {
  it('are server__tool with other characters replaced', () => {
    expect(modelNames([{ server: 'coord', tool: 'work.claim' }])).toEqual(['coord__work_claim']);
    expect(modelNames([{ server: 'große', tool: 'a b' }])).toEqual(['gro_e__a_b']);
  });

  it('are told apart when they would be the same, whatever the order', () => {
    const tools = [
      { server: 'a', tool: 'b.c' },
      { server: 'a', tool: 'b_c' },
      { server: 'a', tool: 'd' },
    ];
    const names = modelNames(tools);
    expect(new Set(names).size).toBe(3);
    expect(names[0]).toMatch(/^a__b_c_[0-9a-f]{8}$/);
    expect(names[2]).toBe('a__d');
    expect(modelNames([...tools].reverse())).toEqual([...names].reverse());
  });

  it('are always acceptable and distinct', () => {
    const tool = fc.record({ server: fc.string({ minLength: 1 }), tool: fc.string({ maxLength: 100 }) });
    const distinct = fc.uniqueArray(tool, { selector: ({ server, tool: name }) => `${server}\0${name}` });
    fc.assert(
      fc.property(distinct, (tools) => {
        const names = modelNames(tools);
        expect(new Set(names).size).toBe(tools.length);
        for (const name of names) expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
      }),
    );
  });
});
