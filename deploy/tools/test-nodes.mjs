// `npm run test:nodes -- [--all] [versions] [-- files]`: runs tests on several versions of Node.js, with their times.
//
//   npm run test:nodes                    all of them: 20, 22, 24, 26
//   npm run test:nodes -- 22 24           these
//   npm run test:nodes -- 22 -- packages  other files
//   npm run test:nodes -- --all 22        everything that `npm test` runs
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const VERSIONS = ['20', '22', '24', '26'];
/** The tests that use most of Node.js: sockets, TLS, files, threads, processes; and the codecs. */
const FILES = [
  'packages/protocol/',
  'packages/client/src/machine/',
  'packages/client/src/transport/',
  'packages/server/src/http/',
  'packages/server/src/tls/',
  'packages/server/src/node/',
  'packages/server/src/sasl/',
  'packages/testing/src/test-server',
];

const isAll = process.argv.includes('--all');
const words = process.argv.slice(2).filter((word) => word !== '--all');
const at = words.indexOf('--');
const chosen = at < 0 ? words : words.slice(0, at);
const files = at < 0 ? FILES : words.slice(at + 1);
console.log('| Node.js | tests | time |\n| --- | --- | --- |');
for (const version of chosen.length === 0 ? VERSIONS : chosen) {
  const node = join(ROOT, `deploy/tools/node_modules/node-${version}/bin/node`);
  if (!existsSync(node))
    throw new Error(`there is no ${node}; npm ci --force --prefix deploy/tools installs ${VERSIONS.join(', ')}`);
  // Processes started by tests use the same version.
  const env = { ...process.env, PATH: `${dirname(node)}:${process.env.PATH}` };
  const started = Date.now();
  const chosenTests = isAll
    ? ['--project', 'sources', '--project', 'packages', '--project', 'processes']
    : ['--project', 'sources', '--project', 'packages', ...files];
  const args = ['node_modules/vitest/vitest.mjs', 'run', '--reporter', 'dot', ...chosenTests];
  const { status, stdout } = spawnSync(node, args, {
    cwd: ROOT,
    env,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  if (status !== 0) process.stdout.write(stdout);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: colours
  const tests = /Tests +(.*)/.exec(stdout.replaceAll(/\x1b\[[0-9;]*m/g, ''))?.[1] ?? 'no summary';
  const full = spawnSync(node, ['--version'], { encoding: 'utf8' }).stdout.trim();
  console.log(`| ${full} | ${tests} | ${Math.round((Date.now() - started) / 1000)} s |`);
  if (status !== 0) process.exitCode = 1;
}
