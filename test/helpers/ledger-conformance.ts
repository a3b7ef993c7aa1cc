import { afterEach, beforeEach, describe } from 'vitest';
import { claimingRules } from './ledger-conformance/claiming.ts';
import { LedgerHarness, type OpenFixture } from './ledger-conformance/harness.ts';
import { historyRules } from './ledger-conformance/histories.ts';
import { queueRules } from './ledger-conformance/queue.ts';
import { settlingRules } from './ledger-conformance/settling.ts';
import { submittingRules } from './ledger-conformance/submitting.ts';
import { tellingRules } from './ledger-conformance/telling.ts';

/** The rules of supervisor/coordination/ledger.ts, for any adapter. */
export function ledgerConformance(name: string, open: OpenFixture): void {
  describe(`ledger conformance: ${name}`, () => {
    const harness = new LedgerHarness(open);
    beforeEach(() => harness.start());
    afterEach(() => harness.dispose());
    claimingRules(harness);
    settlingRules(harness);
    queueRules(harness);
    submittingRules(harness);
    tellingRules(harness);
    historyRules(harness);
  });
}
