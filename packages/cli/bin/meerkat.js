#!/usr/bin/env node
// Runs the compiled command; see src/main.ts.
import module from 'node:module';

// Node 22 and later keep compiled code between starts.
module.enableCompileCache?.();

const { main } = await import('../dist/main.js').catch((error) => {
  if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error;
  console.error(`meerkat is not built yet (${error.message.split('\n')[0]}): run "npm ci && npm run build" first`);
  process.exit(1);
});
// Not just the exit code: a file operation that hangs on a dead device must not keep the process.
process.exit(await main(process.argv.slice(2)));
