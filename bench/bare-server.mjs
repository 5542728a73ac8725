// The ceiling for a server on Node.js: echo.mjs, which does nothing but take frames apart and answer them.
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { freePort } from './engine.mjs';
import { start } from './processes.mjs';

const ECHO = fileURLToPath(new URL('echo.mjs', import.meta.url));

/** Stands before its figure in the column of the reference. */
export const BARE_NOTE = 'bare: ';

/** Requests of the size of a getData of this benchmark, and replies of that of its answer with 1 KiB. */
export const LIKE_A_READ = { 'req-size': 20, 'rep-size': 1108 };

export const startBareServer = () => startProgram(ECHO);

/** Starts a program of this folder that serves the port it is given, and waits until it does. */
export async function startProgram(file) {
  const port = await freePort();
  const child = start(process.execPath, [file, String(port)], { stdio: 'ignore' });
  for (let i = 0; i < ATTEMPTS && !(await isServed(port)); i++) await sleep(20);
  return { port, pid: child.pid, child };
}

/** Half a minute of them. */
const ATTEMPTS = 1500;

function isServed(port) {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
