// `node compile.cjs SCRIPT…`: writes the code cache of this Node.js next to each script.
const { readFileSync, writeFileSync } = require('node:fs');
const { Script } = require('node:vm');

for (const path of process.argv.slice(2)) {
  writeFileSync(`${path}.compiled`, new Script(readFileSync(path, 'utf8')).createCachedData());
}
