// The ceiling for a server on Node.js: echo.mjs, which does nothing but take frames apart and answer them.

import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { freePort } from './engine.mjs';
import { start } from './processes.mjs';

const ECHO = fileURLToPath(new URL('echo.mjs', import.meta.url));

/** Stands before its figure in the column of the reference. */
export const BARE_NOTE = 'bare: ';

/** Requests of the size of a getData of this benchmark, and replies of that of its answer with 1 KiB. */
export const LIKE_A_READ = { 'req-size': 20, 'rep-size': 1108 };

export async function startBareServer() {
  const port = await freePort();
  const child = start(process.execPath, [ECHO, String(port)], { stdio: 'ignore' });
  await sleep(500);
  return { port, pid: child.pid, child };
}
