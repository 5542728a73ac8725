// `node compile.cjs SCRIPT…`: writes beside each script what this Node.js compiles of it.
const { readFileSync, writeFileSync } = require('node:fs');
const { Script } = require('node:vm');

for (const path of process.argv.slice(2)) {
  writeFileSync(`${path}.compiled`, new Script(readFileSync(path, 'utf8')).createCachedData());
}
