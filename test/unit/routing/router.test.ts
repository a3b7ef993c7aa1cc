import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compileMatch } from '../../../supervisor/routing/match.ts';
import { Router } from '../../../supervisor/routing/router.ts';
import { routeConfig } from '../../helpers/route-config.ts';

const find = (matches: string[], uri: string): string | null =>
  new Router(matches.map((match) => routeConfig({ match }))).find('s', uri)?.config.match ?? null;

describe('router', () => {
  it('prefers an exact match to any glob, whatever was declared first', () => {
    expect(find(['a:///x/**', 'a:///x/1'], 'a:///x/1')).toBe('a:///x/1');
  });

  it('prefers the glob with the longest literal prefix', () => {
    expect(find(['a:///**', 'a:///x/**', 'a:///x/y*'], 'a:///x/y1')).toBe('a:///x/y*');
    expect(find(['a:///**', 'a:///x/**', 'a:///x/y*'], 'a:///x/z')).toBe('a:///x/**');
  });

  it('falls back to declared order between equal prefixes', () => {
    const router = new Router([
      routeConfig({ name: 'first', match: 'a:///{x,y}' }),
      routeConfig({ name: 'second', match: 'a:///*' }),
    ]);
    expect(router.find('s', 'a:///x')?.config.name).toBe('first');
  });

  it('skips a route bound to another server', () => {
    const router = new Router([
      routeConfig({ name: 'other', server: 'other', match: 'a:///x' }),
      routeConfig({ name: 'any', match: 'a:///*' }),
    ]);
    expect(router.find('s', 'a:///x')?.config.name).toBe('any');
    expect(router.find('other', 'a:///x')?.config.name).toBe('other');
  });

  it('gives every uri at most one owner, and the same one each time', () => {
    const part = fc.constantFrom('a', 'b', 'ab', '*', '**', '{a,b}');
    const pattern = fc.array(part, { minLength: 1, maxLength: 4 }).map((parts) => `t:///${parts.join('/')}`);
    const uri = fc
      .array(fc.constantFrom('a', 'b', 'ab'), { minLength: 1, maxLength: 4 })
      .map((parts) => `t:///${parts.join('/')}`);
    fc.assert(
      fc.property(fc.array(pattern, { maxLength: 6 }), uri, (patterns, one) => {
        const router = new Router(
          patterns.map((match, index) => routeConfig({ name: String(index), match })),
        );
        const found = router.find('s', one);
        const candidates = router.routes.filter((route) => route.match.test(one));
        if (candidates.length === 0) expect(found).toBeNull();
        else {
          const exact = candidates.filter((route) => route.match.exact);
          const longest = Math.max(...candidates.map((route) => route.match.literalPrefix));
          const best = exact[0] ?? candidates.find((route) => route.match.literalPrefix === longest);
          expect(found).toBe(best);
        }
      }),
    );
  });
});

describe('uri patterns', () => {
  it('treats a question mark, brackets of regular expressions and dots as ordinary text', () => {
    expect(compileMatch('db://t?id=1').exact).toBe(true);
    const query = compileMatch('db://t?id=*');
    expect(query.test('db://t?id=4')).toBe(true);
    expect(query.test('db://tXid=4')).toBe(false);
    expect(compileMatch('f:///**/c?(x).md').test('f:///a/c?(x).md')).toBe(true);
    expect(compileMatch('f:///**/c?(x).md').test('f:///a/cx.md')).toBe(false);
  });

  it('lets one star stay within a segment and two cross segments, hidden names included', () => {
    expect(compileMatch('f:///*').test('f:///a/b')).toBe(false);
    expect(compileMatch('f:///**').test('f:///a/.b')).toBe(true);
  });
});
