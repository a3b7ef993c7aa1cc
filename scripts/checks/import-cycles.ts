import type { Check, SourceFile } from './project.ts';

/** Cycles of imports that exist when the program runs; what is erased or lazy cannot deadlock a start. */
export const importCycles: Check = (files) => {
  const byPath = new Map(files.map((file) => [file.path, file]));
  const done = new Set<string>();
  const problems: string[] = [];
  const visit = (file: SourceFile, trail: readonly string[]): void => {
    const at = trail.indexOf(file.path);
    if (at !== -1) {
      problems.push(`${[...trail.slice(at), file.path].join(' → ')} is an import cycle`);
      return;
    }
    if (done.has(file.path)) return;
    for (const { target, local, typeOnly, lazy } of file.imports) {
      const next = local && !typeOnly && !lazy ? byPath.get(target) : undefined;
      if (next !== undefined) visit(next, [...trail, file.path]);
    }
    done.add(file.path);
  };
  for (const file of files) visit(file, []);
  return problems;
};
