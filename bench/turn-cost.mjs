// Loaded into a Meerkat server under measurement (`node --import`): what its dearest turn has cost. A turn ends with a
// callback of setImmediate (packages/server/src/node/turn.ts). What counts is the processor time of the main thread since
// the end of the turn before, its part of garbage collection included: it stands still while others have the processor.
// At each SIGUSR2 it writes the most since the last one, in milliseconds, to the file TURN_METER_FILE.
import { openSync, readSync, writeFileSync } from 'node:fs';

const file = process.env.TURN_METER_FILE;
const schedstat = openSync(`/proc/self/task/${process.pid}/schedstat`);
const text = Buffer.alloc(128);
const defer = globalThis.setImmediate;
let last = spent();
let most = 0;

/** Nanoseconds, as Linux counts them. */
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
