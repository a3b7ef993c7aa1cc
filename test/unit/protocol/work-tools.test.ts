import { describe, expect, it } from 'vitest';
import { claimResult } from '../../../protocol/work-tools.ts';

describe('the answer to a claim', () => {
  it.each([null, 'soon', {}, true])('is a lost claim also where its hint is %j', (hint) => {
    const answer = claimResult.parse({ granted: false, held_by: 'another', retry_after_ms: hint });
    expect(answer).toMatchObject({ granted: false, held_by: 'another' });
    expect('retry_after_ms' in answer ? answer.retry_after_ms : undefined).toBeUndefined();
  });

  it('keeps a hint that is a number', () => {
    expect(claimResult.parse({ granted: false, held_by: '<waiting>', retry_after_ms: 250 })).toMatchObject({
      retry_after_ms: 250,
    });
  });
});
