import { describe, expect, it } from 'vitest';
import {
  parseClaim,
  parseRoute,
  parseServer,
  ShorthandError,
  splitCommand,
  splitList,
} from '../../../supervisor/config/shorthand.ts';

describe('--mcp', () => {
  it('splits at the first =', () => {
    expect(parseServer('inbox=https://x.example/mcp?a=b')).toEqual({
      name: 'inbox',
      endpoint: 'https://x.example/mcp?a=b',
    });
  });

  it.each(['inbox', '=https://x.example', 'inbox='])('refuses %j as a server', (text) => {
    expect(() => parseServer(text)).toThrow(ShorthandError);
  });
});

describe('--route', () => {
  it.each([
    ['inbox://**=>spawn', { match: 'inbox://**' }],
    ['a://x=>continue:desk', { match: 'a://x', disposition: 'continue', session: 'desk' }],
    ['a://x=>continue', { match: 'a://x', disposition: 'continue' }],
    ['a://x=>claim:coord', { match: 'a://x', claim: { server: 'coord' } }],
    ['a://x=>claim:coord:resource', { match: 'a://x', claim: { server: 'coord', style: 'resource' } }],
    [
      'a://x?q=1=>claim:coord,ttl=5s,renew_fraction=.5,name=n,debounce=0,tools=a__*|b__c',
      {
        match: 'a://x?q=1',
        claim: { server: 'coord', ttl: '5s', renew_fraction: '.5' },
        name: 'n',
        debounce: '0',
        tools: ['a__*', 'b__c'],
      },
    ],
    ['a://x=>spawn,instruction=Read\\, then=file', { match: 'a://x', instruction: 'Read, then=file' }],
  ])('reads %s', (text, route) => {
    expect(parseRoute(text)).toEqual(route);
  });

  it.each([
    ['a://x', 'is not MATCH=>'],
    ['=>spawn', 'is not MATCH=>'],
    ['a=>jump', '"jump"'],
    ['a=>claim', '"claim"'],
    ['a=>claim:', '"claim:"'],
    ['a=>spawn:x', '"spawn:x"'],
    ['a=>spawn,colour=red', '"colour=red"'],
    ['a=>spawn,name', '"name"'],
    ['a=>spawn,ttl=5s', 'needs claim:SERVER'],
  ])('refuses %s, naming %s', (text, named) => {
    expect(() => parseRoute(text)).toThrow(named);
  });
});

describe('--claim', () => {
  it('splits at the last =, since a URI may hold one', () => {
    expect(parseClaim('a://x?q=1=coord')).toEqual({ match: 'a://x?q=1', claim: { server: 'coord' } });
    expect(parseClaim('a://x=coord:resource').claim).toEqual({ server: 'coord', style: 'resource' });
  });

  it.each(['a://x', '=coord', 'a://x='])('refuses %j as a claim', (text) => {
    expect(() => parseClaim(text)).toThrow(ShorthandError);
  });
});

describe('the command of a stdio server', () => {
  it.each([
    ['node x.js', ['node', 'x.js']],
    ['  node   x.js  ', ['node', 'x.js']],
    [`node 'a b' "c d" e\\ f`, ['node', 'a b', 'c d', 'e f']],
    [`node -e 'console.log("$HOME && \\n")'`, ['node', '-e', 'console.log("$HOME && \\n")']],
    [`node ""`, ['node', '']],
    ['', []],
  ])('splits %j', (text, words) => {
    expect(splitCommand(text)).toEqual(words);
  });

  it('refuses an open quote', () => {
    expect(() => splitCommand('node "x')).toThrow('open quote');
  });
});

describe('comma-separated lists', () => {
  it('ignore blanks and empty items', () => {
    expect(splitList(' a, b,,c ')).toEqual(['a', 'b', 'c']);
  });
});
