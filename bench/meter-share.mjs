// Preloaded into a server: on SIGUSR2 it writes to METER_SHARE_FILE the share of the core thread's busy time spent on
// metrics since the last signal. Inlined functions are recognized too.
import { writeFileSync } from 'node:fs';
import { Session } from 'node:inspector/promises';

const COUNTS = /\/core\/dist\/base\/meters\/|\/server\/dist\/metrics\/metrics\.js$/;
const IDLE = new Set(['(idle)', '(program)']);
const SAMPLE_US = 500;

const session = new Session();
session.connect();
await session.post('Profiler.enable');
await session.post('Profiler.setSamplingInterval', { interval: SAMPLE_US });
await session.post('Profiler.start');

process.on('SIGUSR2', async () => {
  const { profile } = await session.post('Profiler.stop');
  const frames = new Map(profile.nodes.map(({ id, callFrame }) => [id, callFrame]));
  let busy = 0;
  let counting = 0;
  for (const [i, id] of profile.samples.entries()) {
    const { functionName, url } = frames.get(id);
    if (IDLE.has(functionName)) continue;
    busy += profile.timeDeltas[i];
    if (COUNTS.test(url)) counting += profile.timeDeltas[i];
  }
  writeFileSync(process.env.METER_SHARE_FILE, `${counting / busy}\n`);
  await session.post('Profiler.start');
});
