// Puts what the command `meerkat` needs, as it was compiled, into a few files that are loaded when they are wanted: `dist/bundle/`.
// The server and the console stay packages of their own.
import { mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { rolldown } from 'rolldown';

const DIST = join(import.meta.dirname, 'dist');
const BUNDLE = join(DIST, 'bundle');
const ENTRY = 'main.js';

const build = await rolldown({
  input: join(DIST, ENTRY),
  platform: 'node',
  external: [/^@meerkat\/(server|console)/],
  plugins: [{ name: 'places', transform: keepPlace }],
});
const { output } = await build.generate({
  format: 'esm',
  keepNames: true,
  entryFileNames: ENTRY,
  // Hashed names: a build does not change the contents of a chunk under a command that is running.
  chunkFileNames: '[name]-[hash].js',
});
await build.close();

mkdirSync(BUNDLE, { recursive: true });
const before = readdirSync(BUNDLE);
const names = output.map(({ fileName }) => fileName);
for (const { fileName, code } of output) {
  if (fileName !== ENTRY && !before.includes(fileName)) writeWhole(fileName, code);
}
writeWhole(ENTRY, output.find(({ fileName }) => fileName === ENTRY).code);
for (const name of before)
  if (name.endsWith('.js') && !names.includes(name)) rmSync(join(BUNDLE, name), { force: true });

/** Atomic for concurrent readers. */
function writeWhole(name, code) {
  const path = join(BUNDLE, name);
  writeFileSync(`${path}.${process.pid}`, code);
  renameSync(`${path}.${process.pid}`, path);
}

/** Makes `import.meta.url` refer to the place of the module, not of the bundle. */
function keepPlace(code, id) {
  if (id.startsWith('\0') || !code.includes('import.meta')) return null;
  const path = relative(DIST, id);
  if (path.startsWith('..')) throw new Error(`${id} looks for its own place, which only modules of this package may`);
  return code.replaceAll('import.meta.url', `new URL(${JSON.stringify(`../${path}`)}, import.meta.url).href`);
}
