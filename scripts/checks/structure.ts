import { errorCodes } from './error-codes.ts';
import { eventNames } from './event-names.ts';
import { fileRules, importRules, processRules } from './folder-rules.ts';
import { importCycles } from './import-cycles.ts';
import type { Check } from './project.ts';
import { openPromises, switchedTests } from './promises.ts';
import { testTitles } from './test-titles.ts';

/** The checks that need nothing but the syntax of the sources, by name. */
export const STRUCTURE: Readonly<Record<string, Check>> = {
  'imports keep to the house plan': importRules,
  'files keep to the house plan': fileRules,
  'only the mains own the process': processRules,
  'no import cycles': importCycles,
  'error codes match the table': errorCodes,
  'logged events are in the vocabulary': eventNames,
  'test titles are unique': testTitles,
  'no work is promised in comments': openPromises,
  'no test is switched off': switchedTests,
};
