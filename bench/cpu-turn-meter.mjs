// Loaded into a Node.js server under measurement (`node --import`): the processor time of its longest turn, all threads of
// the process together, which does not grow while other programs have the processors.
// At each SIGUSR2 it writes the longest since the last one, in milliseconds, to the file TURN_METER_FILE.
import { writeFileSync } from 'node:fs';

let longestMs = 0;
let last = process.cpuUsage();

function measure() {
  const now = process.cpuUsage();
  longestMs = Math.max(longestMs, (now.user + now.system - last.user - last.system) / 1000);
  last = now;
  // A turn has a timer phase, a poll phase and a check phase.
  setTimeout(() => setImmediate(measure), 0).unref();
}
measure();

process.on('SIGUSR2', () => {
  writeFileSync(process.env.TURN_METER_FILE, `${longestMs}\n`);
  longestMs = 0;
});
