// Loaded into a Meerkat server under measurement (`node --import`): measures its most expensive turn. A turn ends with
// a callback of setImmediate (packages/server/src/node/turn.ts). The cost is the CPU time of the main thread since the
// end of the previous turn, including its share of garbage collection; other processes do not affect it.
// On SIGUSR2 it writes the maximum since the last signal, in milliseconds, to TURN_METER_FILE.
import { openSync, readSync, writeFileSync } from 'node:fs';

const file = process.env.TURN_METER_FILE;
const schedstat = openSync(`/proc/self/task/${process.pid}/schedstat`);
const text = Buffer.alloc(128);
const defer = globalThis.setImmediate;
let last = spent();
let most = 0;

/** Nanoseconds of CPU time, from /proc. */
function spent() {
  const length = readSync(schedstat, text, 0, text.length, 0);
  return Number(text.toString('latin1', 0, length).split(' ')[0]);
}

function count() {
  const now = spent();
  most = Math.max(most, now - last);
  last = now;
}

globalThis.setImmediate = (callback, ...args) =>
  defer(() => {
    callback(...args);
    count();
  });

process.on('SIGUSR2', () => {
  writeFileSync(file, `${most / 1e6}\n`);
  most = 0;
});
