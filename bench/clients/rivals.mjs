// The other ZooKeeper clients on npm: installed on demand below the benchmark's directory, never as dependencies of
// this repository. The native one has no binary for Linux: it compiles its own copy of the C client.
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { BENCH_DIRECTORY } from '../load-generator.mjs';
import { run } from '../processes.mjs';

const MANIFESTS = ['package.json', 'package-lock.json'].map((name) => ({
  name,
  path: fileURLToPath(new URL(name, import.meta.url)),
}));

/**
 * Installs them, or reuses the installation of an earlier run of the same Node.js.
 *
 * @returns the folder with their node_modules, and whether each of them can be loaded
 */
export async function installRivals(progress) {
  const directory = join(BENCH_DIRECTORY, 'clients', fingerprint());
  const stamp = join(directory, 'installed');
  if (!existsSync(stamp)) {
    progress('installing the other clients; the native one compiles for a while');
    rmSync(directory, { recursive: true, force: true });
    mkdirSync(directory, { recursive: true });
    for (const { name, path } of MANIFESTS) copyFileSync(path, join(directory, name));
    const npm = (...args) => run('npm', args, { cwd: directory, env: environment() });
    await npm('ci', '--ignore-scripts', '--no-audit', '--no-fund');
    await npm('rebuild', 'zookeeper').catch((error) => progress(`zookeeper did not compile: ${error.message}`));
    writeFileSync(stamp, '');
  }
  const isBuilt = existsSync(join(directory, 'node_modules/zookeeper/build/Release/zookeeper.node'));
  return { directory, names: [...(isBuilt ? ['zookeeper'] : []), 'node-zookeeper-client'] };
}

/** A compiled module fits one version of Node.js only. */
function fingerprint() {
  const hash = createHash('sha256').update(process.version).update(process.arch);
  for (const { path } of MANIFESTS) hash.update(readFileSync(path));
  return hash.digest('hex').slice(0, 12);
}

/** The environment without the variables of `npm run`, which a nested npm would take for its own. */
function environment() {
  const foreign = /^(npm_package_|npm_lifecycle_|npm_config_local_prefix$|npm_command$|INIT_CWD$)/;
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !foreign.test(name)));
}
