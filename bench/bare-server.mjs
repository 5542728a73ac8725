// The upper bound for a Node.js server: echo.mjs, which only parses frames and answers them.
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { freePort } from './engine.mjs';
import { start } from './processes.mjs';

const ECHO = fileURLToPath(new URL('echo.mjs', import.meta.url));

/** Prefix of its figure in the column of the reference. */
export const BARE_NOTE = 'bare: ';

/** Sizes of this benchmark's getData request and of its reply with 1 KiB of data. */
export const LIKE_A_READ = { 'req-size': 20, 'rep-size': 1108 };

export const startBareServer = () => startProgram(ECHO);

/** Starts a server program of this folder on a free port, and waits until it accepts connections. */
export async function startProgram(file) {
  const port = await freePort();
  const child = start(process.execPath, [file, String(port)], { stdio: 'ignore' });
  for (let i = 0; i < ATTEMPTS && !(await isServed(port)); i++) await sleep(20);
  return { port, pid: child.pid, child };
}

/** Half a minute of attempts. */
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
