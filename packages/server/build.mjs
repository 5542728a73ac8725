// Puts what `@meerkat/server/run` needs, as it was compiled, into one file: `dist/bundle.js`. Its threads start from their own files.
import { renameSync } from 'node:fs';
import { join, relative } from 'node:path';
import { rolldown } from 'rolldown';

const DIST = join(import.meta.dirname, 'dist');

const build = await rolldown({
  input: join(DIST, 'run.js'),
  platform: 'node',
  // Imported where they are needed, which is seldom.
  external: ['fastify', 'node-forge', 'pino'],
  plugins: [{ name: 'places', transform: keepPlace }],
});
const file = join(DIST, `.bundle-${process.pid}.js`);
await build.write({ file, format: 'esm', keepNames: true });
await build.close();
// A server that starts meanwhile finds a whole file.
renameSync(file, join(DIST, 'bundle.js'));

/** What a module finds beside itself, it finds from the one file. */
function keepPlace(code, id) {
  if (id.startsWith('\0') || !code.includes('import.meta')) return null;
  const path = relative(DIST, id);
  if (path.startsWith('..')) throw new Error(`${id} looks for its own place, which only modules of this package may`);
  return code.replaceAll('import.meta.url', `new URL(${JSON.stringify(`./${path}`)}, import.meta.url).href`);
}
