// `@meerkat/server/run`: the server from one file, `build.mjs` makes it, where half of a start was to find and open some 400 of them.
// Without that file, or with one that is older than what was compiled, from the files themselves.
import { statSync } from 'node:fs';

const changedMs = (path) => statSync(new URL(path, import.meta.url), { throwIfNoEntry: false })?.mtimeMs ?? 0;

const bundleMs = changedMs('./dist/bundle.js');
// Packages that are published have none of these.
const isCurrent = ['./', '../protocol/', '../core/', '../client/', '../console/'].every(
  (directory) => changedMs(`${directory}dist/.tsbuildinfo`) <= bundleMs,
);

export const {
  ConfigurationError,
  ExitCode,
  isSingleFile,
  MEERKAT_VERSION,
  readJvmFlags,
  readZooCfg,
  runServer,
  ZOOKEEPER_VERSION,
} = await import(bundleMs > 0 && isCurrent ? './dist/bundle.js' : './dist/run.js');
