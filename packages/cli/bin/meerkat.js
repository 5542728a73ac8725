#!/usr/bin/env node
// Runs the command from the few files that `build.mjs` makes: to find, open and link its modules took a third of the processor time
// of a start. Where these are missing, or older than what was compiled (src/main.ts), the modules are loaded.
import { statSync } from 'node:fs';
import module from 'node:module';

// Node 22 and later keep compiled code between starts.
module.enableCompileCache?.();

const changedMs = (path) => statSync(new URL(path, import.meta.url), { throwIfNoEntry: false })?.mtimeMs ?? 0;

const bundleMs = changedMs('../dist/bundle/main.js');
// Packages that are published have none of these.
const isCurrent = ['../', '../../protocol/', '../../client/', '../../recipes/'].every(
  (directory) => changedMs(`${directory}dist/.tsbuildinfo`) <= bundleMs,
);
const entry = bundleMs > 0 && isCurrent ? '../dist/bundle/main.js' : '../dist/main.js';

const { main } = await import(entry).catch((error) => {
  if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error;
  console.error(`meerkat is not built yet (${error.message.split('\n')[0]}): run "npm ci && npm run build" first`);
  process.exit(1);
});
// Not just the exit code: a file operation that hangs on a dead device must not keep the process.
process.exit(await main(process.argv.slice(2)));
