// Loaded into a Node.js server under measurement (`node --import`): measures the event loop delay.
// On SIGUSR2 it writes the longest delay since the last signal, in milliseconds, to TURN_METER_FILE.
import { writeFileSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';

const file = process.env.TURN_METER_FILE;
const RESOLUTION_MS = 1;
const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
delay.enable();

process.on('SIGUSR2', () => {
  writeFileSync(file, `${Math.max(0, delay.max / 1e6 - RESOLUTION_MS)}\n`);
  delay.reset();
});
