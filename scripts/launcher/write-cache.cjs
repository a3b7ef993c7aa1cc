'use strict';
// node write-cache.cjs BUNDLE CACHE [ARG…]: runs a bundle as its launcher would and, when it ends,
// writes the bundle's mark and the V8 code cache of everything that was compiled on the way.
const { readFileSync, writeFileSync } = require('node:fs');
const { createRequire, wrap } = require('node:module');
const { dirname } = require('node:path');
const { Script } = require('node:vm');

const [, , filename, cache, ...args] = process.argv;
process.argv = [process.argv[0], filename, ...args];
const source = readFileSync(filename, 'latin1');
const script = new Script(wrap(source), { filename });
process.on('exit', () => {
  writeFileSync(cache, Buffer.concat([Buffer.from(source.slice(-65, -1)), script.createCachedData()]));
});
const loaded = { exports: {} };
script
  .runInThisContext()
  .call(loaded.exports, loaded.exports, createRequire(filename), loaded, filename, dirname(filename));
