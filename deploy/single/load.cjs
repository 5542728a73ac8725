// Runs scripts that stand inside the executable, each with what was compiled of it. Elsewhere (another processor, other flags of
// V8) compiled code is refused, and the script is compiled as usual.
const { getAsset, getRawAsset } = require('node:sea');
const { Script } = require('node:vm');

const modules = new Map();

/** `require` of these scripts: one that was built, by its name, or what Node.js has. */
// biome-ignore lint/correctness/noUnusedVariables: the call of an entry is put behind this file
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
