// `@meerkat/server/run`: loads the server from one file, which `build.mjs` makes; to find, open and link its 480 modules took half
// of the processor time of a start. Where that file is missing, or older than what was compiled, the modules are loaded.
import { statSync } from 'node:fs';

const changedMs = (path) => statSync(new URL(path, import.meta.url), { throwIfNoEntry: false })?.mtimeMs ?? 0;

const bundleMs = changedMs('./dist/bundle.js');
// Packages that are published have none of these.
const isCurrent = ['./', '../protocol/', '../core/', '../client/', '../console/'].every(
  (directory) => changedMs(`${directory}dist/.tsbuildinfo`) <= bundleMs,
);

export const {
  ConfigurationError,
  CuttableNetwork,
  ExitCode,
  isSingleFile,
  MEERKAT_VERSION,
  readJvmFlags,
  readZooCfg,
  runServer,
  ZOOKEEPER_VERSION,
} = await import(bundleMs > 0 && isCurrent ? './dist/bundle.js' : './dist/run.js');
