// Puts what `@meerkat/server/run` needs, as it was compiled, into one file: `dist/bundle.js`. Its threads start from their own files;
// the I/O threads and the one that a restart waits for have one file each, too.
import { renameSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { rolldown } from 'rolldown';

const DIST = join(import.meta.dirname, 'dist');

/** Those that have one file, by the module that starts them: where `main.js` is, and `bundle.js` goes. */
const THREADS = {
  'node/scans/node-scans.js': 'node/scans/',
  'node/threads/client-threads.js': 'node/threads/',
};

await bundle('run.js', 'bundle.js', [{ name: 'places', transform: keepPlace }]);
for (const directory of Object.values(THREADS)) await bundle(`${directory}main.js`, `${directory}bundle.js`, []);

async function bundle(input, output, plugins) {
  const build = await rolldown({
    input: join(DIST, input),
    platform: 'node',
    // Imported where they are needed, which is seldom.
    external: ['fastify', 'node-forge', 'pino'],
    plugins,
  });
  const file = join(DIST, dirname(output), `.bundle-${process.pid}.js`);
  await build.write({ file, format: 'esm', keepNames: true });
  await build.close();
  // A server that starts meanwhile finds a whole file.
  renameSync(file, join(DIST, output));
}

/** What a module finds beside itself, it finds from the one file. */
function keepPlace(code, id) {
  if (id.startsWith('\0') || !code.includes('import.meta')) return null;
  const path = relative(DIST, id);
  if (path.startsWith('..')) throw new Error(`${id} looks for its own place, which only modules of this package may`);
  const placed = code.replaceAll('import.meta.url', `new URL(${JSON.stringify(`./${path}`)}, import.meta.url).href`);
  return path in THREADS ? placed.replace(`'./main.js'`, `'./bundle.js'`) : placed;
}
