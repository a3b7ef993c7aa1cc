import { defineConfig } from 'vitest/config';

/** Where a machine-readable report is wanted beside the one for people. */
const report = process.env.AGENTD_TEST_REPORT;

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    pool: 'forks',
    // Real processes on a small machine: generous ceilings, never a measure of speed.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    maxWorkers: 2,
    // On a shared machine a real process may be starved once; what fails twice is a fault.
    retry: process.env.CI === undefined ? 0 : 1,
    reporters: report === undefined ? ['default'] : ['default', ['json', { outputFile: report }]],
  },
});
