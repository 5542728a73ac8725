// Builds the page of the console with Vite, unless what it is made of is what it was made of the last time.
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { build } from 'vite';

const HERE = import.meta.dirname;
const MARK = join(HERE, 'dist/web/.sources');

const sum = createHash('sha256');
const others = ['package.json', 'vite.config.ts', '../../package-lock.json'].map((name) => join(HERE, name));
for (const path of [...filesBelow(join(HERE, 'src')), ...others]) {
  sum.update(`${relative(HERE, path)}\0`).update(readFileSync(path));
}
const sources = sum.digest('hex');

if (!existsSync(MARK) || readFileSync(MARK, 'utf8') !== sources) {
  // Vite leaves out of React what is for development when this is not set to something else, as tests do.
  process.env.NODE_ENV = 'production';
  await build({ configFile: join(HERE, 'vite.config.ts'), logLevel: 'error' });
  writeFileSync(MARK, sources);
}

function filesBelow(directory) {
  return readdirSync(directory, { withFileTypes: true })
    .flatMap((entry) => {
      const path = join(directory, entry.name);
      return entry.isDirectory() ? filesBelow(path) : [path];
    })
    .sort();
}
