// Runs scripts embedded in the executable, each with its code cache. V8 rejects the cache on another CPU or with other
// flags, and compiles the script as usual.
const { getAsset, getRawAsset } = require('node:sea');
const { Script } = require('node:vm');

const modules = new Map();

/** `require` of these scripts: an embedded script by name, or a module of Node.js. */
// biome-ignore lint/correctness/noUnusedVariables: the call of an entry is appended to this file
function load(id) {
  if (!id.startsWith('./')) return require(id);
  const known = modules.get(id);
  if (known !== undefined) return known.exports;
  const own = { exports: {} };
  modules.set(id, own);
  const name = id.slice(2);
  const compiled = getRawAsset(`${name}.compiled`);
  const script = new Script(getAsset(name, 'utf8'), {
    filename: name,
    cachedData: compiled.byteLength > 0 ? new Uint8Array(compiled) : undefined,
  });
  script.runInThisContext()(own.exports, load, own, __filename, __dirname);
  return own.exports;
}
