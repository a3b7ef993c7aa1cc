import { describe, expect, it } from 'vitest';
import { ruleOfTwo } from '../../../supervisor/gates/rule-of-two.ts';

const tags: Readonly<Record<string, readonly string[]>> = {
  mail: ['untrusted_input', 'egress'],
  books: ['sensitive'],
  web: ['untrusted_input'],
  all: ['untrusted_input', 'sensitive', 'egress'],
  plain: [],
};
const judge = (...servers: string[]): string | null => ruleOfTwo(servers, (server) => tags[server] ?? []);

describe('rule of two', () => {
  it('allows any two of the three tags', () => {
    expect(judge('mail', 'plain')).toBeNull();
    expect(judge('web', 'books')).toBeNull();
    expect(judge()).toBeNull();
  });

  it('refuses all three, also within one server, and names who brings which', () => {
    expect(judge('web', 'mail', 'books')).toMatch(
      /untrusted_input \(web\), sensitive \(books\), egress \(mail\)/,
    );
    expect(judge('all')).toMatch(/--allow-trifecta/);
  });
});
