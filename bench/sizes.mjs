// Memory of a server per znode and per one-shot watch: resident bytes before and after, each measured when the server
// has been idle for a while.
//
//   node bench/sizes.mjs [--count 1000000]
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { connect } from '../packages/client/dist/index.js';
import { meerkatEngine, Server } from './engine.mjs';
import { BENCH_DIRECTORY, buildLoadGenerator, zkload } from './load-generator.mjs';
import { killAll } from './processes.mjs';

const { values } = parseArgs({ options: { count: { type: 'string', default: '1000000' } } });
const count = Number(values.count);
const QUIET_MS = 15_000;
const TOGETHER = 5000;
const DATA_BYTES = 100;

mkdirSync(BENCH_DIRECTORY, { recursive: true });
const directory = mkdtempSync(join(BENCH_DIRECTORY, 'sizes-'));
process.on('exit', () => {
  killAll();
  rmSync(directory, { recursive: true, force: true });
});

const row = (title, before, after) =>
  console.log(
    `| ${title} | ${before.toFixed(0)} MB | ${after.toFixed(0)} MB | ${(((after - before) * 2 ** 20) / count).toFixed(0)} |`,
  );

/** A separate server for each measurement, so that they do not affect each other. */
async function measure(title, fill) {
  const server = new Server(meerkatEngine(), join(directory, title.split(' ')[0]), { snapCount: 2_000_000_000 });
  await server.start();
  await sleep(QUIET_MS);
  const before = server.residentMb();
  const end = await fill(server);
  await sleep(QUIET_MS);
  row(title, before, server.residentMb());
  await end?.();
  await server.destroy();
}

await buildLoadGenerator(() => {});
console.log('| | resident before | after | bytes each |\n| --- | ---: | ---: | ---: |');
await measure(`${count} znodes of ${DATA_BYTES} bytes`, async (server) => {
  await zkload('fill', server, { count, size: DATA_BYTES, conns: 16, depth: 32 });
});
await measure(`watches, ${count} of one client, paths of 23 bytes`, async (server) => {
  const client = await connect(`127.0.0.1:${server.port}`);
  for (let from = 0; from < count; from += TOGETHER) {
    const numbers = Array.from({ length: Math.min(TOGETHER, count - from) }, (_, i) => from + i);
    await Promise.all(
      numbers.map((i) => client.exists(`/watched/znode-${String(i).padStart(8, '0')}`, { watch: true })),
    );
  }
  return () => client.close();
});
