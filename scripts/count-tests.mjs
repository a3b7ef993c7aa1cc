// node count-tests.mjs REPORT STATUS: prints "N passed, N failed" from Vitest's JSON report and fails
// unless tests ran and none failed. STATUS is the exit code of the run: an error outside any test
// fails it too, and counts as one failure.
import { readFileSync } from 'node:fs';

const [, , path = '', status = '1'] = process.argv;

const { passed, failed } = count(readReport(path), Number(status));
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 && passed > 0 ? 0 : 1;

function count(report, exitCode) {
  const files = report?.testResults ?? [];
  const tests = files.flatMap((file) => file.assertionResults);
  const failing = tests.filter((test) => test.status === 'failed').length;
  // A file that could not be loaded has no tests to fail.
  const unloaded = files.filter(
    (file) => file.status === 'failed' && file.assertionResults.length === 0,
  ).length;
  return {
    passed: tests.filter((test) => test.status === 'passed').length,
    failed: Math.max(failing + unloaded, exitCode === 0 ? 0 : 1),
  };
}

function readReport(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return null;
  }
}
