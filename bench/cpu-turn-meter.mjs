// Loaded into a Node.js server under measurement (`node --import`). Measures the CPU time of the longest event loop
// turn, which does not depend on other load: `main` of the main thread, which blocks all clients, and `all` of all
// threads, including those of the garbage collector. `delay` is the event loop delay, including the wait for a CPU.
// Linux only: it reads /proc.
// On SIGUSR2 it writes the maxima since the last signal, in milliseconds, to TURN_METER_FILE: {"main", "all", "delay"}.
import { openSync, readSync, writeFileSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';

const schedstat = openSync(`/proc/self/task/${process.pid}/schedstat`);
const text = Buffer.alloc(128);
const never = new Int32Array(new SharedArrayBuffer(4));
/** Milliseconds. Linux updates the counter when a thread stops running. */
const PAUSE_MS = 0.05;
const RESOLUTION_MS = 1;
const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
delay.enable();
let longest = { main: 0, all: 0 };
let last = spent();

function spent() {
  Atomics.wait(never, 0, 0, PAUSE_MS);
  const { user, system } = process.cpuUsage();
  const length = readSync(schedstat, text, 0, text.length, 0);
  return { main: Number(text.toString('latin1', 0, length).split(' ')[0]) / 1e6, all: (user + system) / 1000 };
}

function measure() {
  const now = spent();
  for (const of of ['main', 'all']) longest[of] = Math.max(longest[of], now[of] - last[of]);
  last = now;
}

/** Sockets are polled between a timer and the next setImmediate; at most one turn passes from there to the timer. */
function watch() {
  measure();
  setTimeout(() => {
    measure();
    setImmediate(watch);
  }, 0).unref();
}
watch();

process.on('SIGUSR2', () => {
  const delayMs = Math.max(0, delay.max / 1e6 - RESOLUTION_MS);
  writeFileSync(process.env.TURN_METER_FILE, JSON.stringify({ ...longest, delay: delayMs }));
  longest = { main: 0, all: 0 };
  delay.reset();
});
