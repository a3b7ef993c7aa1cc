#!/usr/bin/env node
'use strict';
// Runs PROGRAM.cjs with its V8 code cache. A cache of another build, another Node or another CPU
// is refused and the source compiled instead.
/* SIGNALS */
const { readFileSync } = require('node:fs');
const { createRequire, wrap } = require('node:module');
const { join } = require('node:path');
const { Script } = require('node:vm');

const filename = join(__dirname, 'PROGRAM.cjs');
// The build makes sure that the source is ASCII.
const source = readFileSync(filename, 'latin1');
let cachedData;
try {
  const cache = readFileSync(join(__dirname, 'PROGRAM.cache'));
  if (cache.latin1Slice(0, 64) === source.slice(-65, -1)) cachedData = cache.subarray(64);
} catch {
  // No cache: compile.
}
// `cachedDataRejected` needs no action: V8 has then compiled the source itself.
const script = new Script(wrap(source), { filename, cachedData });
const loaded = { exports: {} };
script
  .runInThisContext()
  .call(loaded.exports, loaded.exports, createRequire(filename), loaded, filename, __dirname);
module.exports = loaded.exports;
