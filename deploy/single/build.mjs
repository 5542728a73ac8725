// `npm run build:single -- [--arch x64|arm64] [--out FILE]`: the command `meerkat` as one file that runs without Node.js.
//
// The sources become six scripts, for the main thread, the thread of the HTTP ports, the I/O threads, the one that reads
// stores, those that read the past and the one that looks through files ahead of a start; they go into a copy of the Node.js that `deploy/tools` brings, as its documentation describes ("Single executable
// applications").
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { rolldown } from 'rolldown';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const TOOLS = join(ROOT, 'deploy/tools/node_modules');
/** Names the section of the executable that Node.js looks for. */
const FUSE = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2';
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
  const main = await bundle('packages/cli/src/single/main.ts', join(work, 'main.cjs'));
  const thread = await bundle('packages/server/src/http/thread/main.ts', join(work, 'http-thread.cjs'));
  const ioThread = await bundle('packages/server/src/node/threads/main.ts', join(work, 'io-thread.cjs'));
  const storeThread = await bundle('packages/server/src/tls/store-thread.ts', join(work, 'store-thread.cjs'));
  const pastThread = await bundle('packages/server/src/http/past/main.ts', join(work, 'past-thread.cjs'));
  const scanThread = await bundle('packages/server/src/node/scans/main.ts', join(work, 'scan-thread.cjs'));
  const blob = join(work, 'meerkat.blob');
  const configuration = join(work, 'sea.json');
  writeFileSync(
    configuration,
    JSON.stringify({
      main,
      output: blob,
      assets: {
        'http-thread.js': thread,
        'io-thread.js': ioThread,
        'store-thread.js': storeThread,
        'past-thread.js': pastThread,
        'scan-thread.js': scanThread,
        ...pageOfConsole(),
      },
      disableExperimentalSEAWarning: true,
      // Compiled code is of one processor.
      useCodeCache: arch === 'x64',
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
  // One that runs goes on with the old file.
  rmSync(target, { force: true });
  copyFileSync(runtime, target);
  const megabytes = (file) => `${(statSync(file).size / 1e6).toFixed(1)} MB`;
  console.log(
    `${target}: ${megabytes(target)}, of which ${megabytes(main)} are the command and ${megabytes(thread)} its HTTP ports`,
  );
} finally {
  rmSync(work, { recursive: true, force: true });
}

/** One script, with everything that it imports. */
async function bundle(entry, file) {
  const build = await rolldown({
    input: join(ROOT, entry),
    platform: 'node',
    resolve: { conditionNames: ['source', 'node', 'import'] },
    transform: { target: 'node24' },
    treeshake: true,
    onLog(level, log, handler) {
      // Asked for where there are files only.
      if (log.code === 'EMPTY_IMPORT_META') return;
      handler(level, log);
    },
  });
  await build.write({
    file,
    format: 'cjs',
    codeSplitting: false,
    minify: { compress: true, mangle: false, codegen: { removeWhitespace: true } },
    keepNames: true,
  });
  await build.close();
  return file;
}

/** The page that `meerkat console` shows. */
function pageOfConsole() {
  const directory = join(ROOT, 'packages/console/dist/web');
  execFileSync(process.execPath, [join(ROOT, 'packages/console/build.mjs')], { stdio: 'inherit' });
  const names = ['index.html', ...readdirSync(join(directory, 'assets')).map((name) => `assets/${name}`)];
  return Object.fromEntries(names.map((name) => [`console/${name}`, join(directory, name)]));
}

/** Symbols for debuggers are a seventh of it. */
function strip(file) {
  const tool = arch === 'arm64' && process.arch !== 'arm64' ? 'aarch64-linux-gnu-strip' : 'strip';
  try {
    execFileSync(tool, [file], { stdio: 'ignore' });
  } catch {
    console.log(`${tool} is missing: the executable keeps its symbols`);
  }
}
