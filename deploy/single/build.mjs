// `npm run build:single -- [--arch x64|arm64] [--out FILE]`: builds `meerkat` as one file that runs without Node.js.
//
// The sources are bundled into scripts with their V8 code cache, loaded on demand (`load.cjs`), so that `meerkat ls`
// does not load the server. They are put into a copy of the Node.js in `deploy/tools`, as described in the
// documentation of Node.js ("Single executable applications").
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { rolldown } from 'rolldown';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const TOOLS = join(ROOT, 'deploy/tools/node_modules');
/** The fuse in the executable that Node.js checks. */
const FUSE = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2';
const LOADER = join(ROOT, 'deploy/single/load.cjs');
/** Entry points of the main thread and, by the names that the server uses, of other threads. */
const ENTRIES = {
  main: 'packages/cli/src/single/main.ts',
  'http-thread': 'packages/server/src/http/thread/main.ts',
  'io-thread': 'packages/server/src/node/threads/main.ts',
  'store-thread': 'packages/server/src/tls/store-thread.ts',
  'past-thread': 'packages/server/src/http/past/main.ts',
  'scan-thread': 'packages/server/src/node/scans/main.ts',
};
const RUNTIMES = { x64: 'node-24', arm64: 'node-24-arm64' };

const { values } = parseArgs({ options: { arch: { type: 'string', default: process.arch }, out: { type: 'string' } } });
const { arch } = values;
if (!(arch in RUNTIMES)) throw new Error(`--arch is ${arch}; there are ${Object.keys(RUNTIMES).join(' and ')}`);
const target = resolve(values.out ?? join(ROOT, `dist/meerkat-linux-${arch}`));
if (!existsSync(join(TOOLS, 'postject')))
  execFileSync('npm', ['ci', '--force', '--no-audit', '--no-fund', '--prefix', join(ROOT, 'deploy/tools')], {
    stdio: 'inherit',
  });

const work = mkdtempSync(join(tmpdir(), 'meerkat-single-'));
try {
  const scripts = await bundle(join(work, 'scripts'));
  compile(scripts);
  const main = join(work, 'main.cjs');
  writeFileSync(main, `${readFileSync(LOADER, 'utf8')}load('./main.cjs');`);
  const blob = join(work, 'meerkat.blob');
  const configuration = join(work, 'sea.json');
  writeFileSync(
    configuration,
    JSON.stringify({
      main,
      output: blob,
      assets: {
        // Does not collide with a script: those end with `.cjs`.
        loader: LOADER,
        ...Object.fromEntries(scripts.flatMap(withCompiled).map((path) => [basename(path), path])),
        ...pageOfConsole(),
      },
      disableExperimentalSEAWarning: true,
    }),
  );
  execFileSync(join(TOOLS, RUNTIMES.x64, 'bin/node'), ['--experimental-sea-config', configuration], {
    stdio: 'ignore',
  });

  mkdirSync(dirname(target), { recursive: true });
  const runtime = join(work, 'meerkat');
  copyFileSync(join(TOOLS, RUNTIMES[arch], 'bin/node'), runtime);
  chmodSync(runtime, 0o755);
  strip(runtime);
  execFileSync(
    process.execPath,
    [join(TOOLS, 'postject/dist/cli.js'), runtime, 'NODE_SEA_BLOB', blob, '--sentinel-fuse', FUSE],
    { stdio: ['ignore', 'ignore', 'inherit'] },
  );
  // A running process keeps the old file.
  rmSync(target, { force: true });
  copyFileSync(runtime, target);
  const megabytes = (files) => `${(files.reduce((sum, file) => sum + statSync(file).size, 0) / 1e6).toFixed(1)} MB`;
  console.log(
    `${target}: ${megabytes([target])}, of which ${megabytes(scripts)} are scripts and ${megabytes(scripts.flatMap(withCompiled))} with what is compiled of them`,
  );
} finally {
  rmSync(work, { recursive: true, force: true });
}

/**
 * Bundles the entries and their imports into scripts that are loaded on demand.
 *
 * @returns paths
 */
async function bundle(directory) {
  const build = await rolldown({
    input: Object.fromEntries(Object.entries(ENTRIES).map(([name, path]) => [name, join(ROOT, path)])),
    platform: 'node',
    resolve: { conditionNames: ['source', 'node', 'import'] },
    transform: { target: 'node24' },
    treeshake: true,
    onLog(level, log, handler) {
      // Used only when running from files.
      if (log.code === 'EMPTY_IMPORT_META') return;
      handler(level, log);
    },
  });
  const { output } = await build.write({
    dir: directory,
    format: 'cjs',
    // Scripts of `node:vm` cannot import.
    dynamicImportInCjs: false,
    entryFileNames: '[name].cjs',
    chunkFileNames: '[name].cjs',
    minify: { compress: true, mangle: false, codegen: { removeWhitespace: true } },
    keepNames: true,
  });
  await build.close();
  return output.map(({ fileName }) => {
    const path = join(directory, fileName);
    const text = readFileSync(path, 'utf8');
    writeFileSync(path, `(function (exports, require, module, __filename, __dirname) {${text}\n})`);
    return path;
  });
}

/** Writes the V8 code cache next to each script; empty for arm64, because it depends on the architecture. */
function compile(scripts) {
  if (arch === 'x64') {
    execFileSync(join(TOOLS, RUNTIMES.x64, 'bin/node'), [join(ROOT, 'deploy/single/compile.cjs'), ...scripts]);
  } else {
    for (const script of scripts) writeFileSync(compiledOf(script), '');
  }
}

function compiledOf(script) {
  return `${script}.compiled`;
}

function withCompiled(script) {
  return [script, compiledOf(script)];
}

/** The page that `meerkat console` serves. */
function pageOfConsole() {
  const directory = join(ROOT, 'packages/console/dist/web');
  execFileSync(process.execPath, [join(ROOT, 'packages/console/build.mjs')], { stdio: 'inherit' });
  const names = ['index.html', ...readdirSync(join(directory, 'assets')).map((name) => `assets/${name}`)];
  return Object.fromEntries(names.map((name) => [`console/${name}`, join(directory, name)]));
}

/** Debug symbols are a seventh of the executable. */
function strip(file) {
  const tool = arch === 'arm64' && process.arch !== 'arm64' ? 'aarch64-linux-gnu-strip' : 'strip';
  try {
    execFileSync(tool, [file], { stdio: 'ignore' });
  } catch {
    console.log(`${tool} is missing: the executable keeps its symbols`);
  }
}
