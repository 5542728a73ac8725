// Builds the page of the console with Vite, unless its inputs are unchanged since the last build.
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
  // Vite builds React in production mode only if this has no other value, as in tests.
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
