// The cost of showing past trees in the console: CPU time of the longest turn of the thread that serves clients.
//
//     npm run build && node bench/past.mjs [--znodes 100000] [--rounds 5]
//
// Each round has two phases of the same length under the same load of 500 sets a second: one that reads past trees, and
// one that does not. The memory is the difference in peak memory.
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { execPath } from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { connect } from '@meerkat/client';
import { killAll, start } from './processes.mjs';

const COMMAND = fileURLToPath(new URL('../packages/cli/bin/meerkat.js', import.meta.url));
const METER = fileURLToPath(new URL('cpu-turn-meter.mjs', import.meta.url));
const { values } = parseArgs({
  options: { znodes: { type: 'string', default: '100000' }, rounds: { type: 'string', default: '5' } },
});
const znodes = Number(values.znodes);
const directory = mkdtempSync(join(tmpdir(), 'meerkat-past-'));
const figure = join(directory, 'turn');

try {
  const [port, adminPort] = [await freePort(), await freePort()];
  const keys = {
    dataDir: `${directory}/data`,
    clientPort: port,
    clientPortAddress: '127.0.0.1',
    'admin.serverPort': adminPort,
    'console.enabled': true,
  };
  const text = Object.entries(keys).map(([key, value]) => `${key}=${value}\n`);
  writeFileSync(join(directory, 'zoo.cfg'), text.join(''));
  const env = { ...process.env, TURN_METER_FILE: figure };
  const server = start(execPath, ['--import', METER, COMMAND, 'server', join(directory, 'zoo.cfg')], {
    stdio: 'ignore',
    env,
  });
  const client = await connect({ servers: `127.0.0.1:${port}`, connectTimeoutMs: 60_000 });
  await client.create('/many');
  for (let i = 0; i < znodes; i += 1000) {
    const transaction = client.transaction();
    for (let k = i; k < Math.min(znodes, i + 1000); k++) transaction.create(`/many/n-${k}`, 'x'.repeat(100));
    await transaction.commit();
  }
  const then = (await client.exists('/many')).pzxid;
  const read = await enter(`http://127.0.0.1:${adminPort}/console/api`);
  const rows = [];
  for (let round = 0; round < Number(values.rounds); round++) {
    const memory = memoryOf(server, 'VmRSS');
    const begun = performance.now();
    const during = await longestTurn(server, client, async () => {
      // Trees that are not cached: each is read from disk.
      for (let i = 0; i < 2; i++) await read(`0x${(then - BigInt(2 * round + i)).toString(16)}`);
    });
    const seconds = (performance.now() - begun) / 1000;
    const without = await longestTurn(server, client, () => sleep(seconds * 1000));
    rows.push({ during, without, seconds: seconds / 2, more: memoryOf(server, 'VmHWM') - memory });
    console.error(JSON.stringify(rows.at(-1)));
  }
  const median = (key) => rows.map((row) => row[key]).sort((a, b) => a - b)[rows.length >> 1];
  console.log(
    `${cpus().length} × ${cpus()[0].model}, Node.js ${process.versions.node}; ${rows.length} rounds, medians\n\n| | |\n| --- | --- |\n` +
      `| longest turn of the server while trees of ${znodes.toLocaleString('en-US')} znodes are read; while none is | ${median('during').toFixed(1)} ms; ${median('without').toFixed(1)} ms |\n` +
      `| one is read in | ${median('seconds').toFixed(1)} s |\n` +
      `| memory for two of them | ${Math.max(...rows.map(({ more }) => more))} MB |`,
  );
  await client.close();
} finally {
  killAll();
  rmSync(directory, { recursive: true, force: true });
}

/** Milliseconds. */
async function longestTurn(server, client, work) {
  await askMeter(server);
  let isOver = false;
  const writing = (async () => {
    while (!isOver) {
      await Promise.all(Array.from({ length: 5 }, (_, i) => client.set(`/many/n-${i}`, 'x'.repeat(100))));
      await sleep(10);
    }
  })();
  await work();
  isOver = true;
  await writing;
  return JSON.parse(await askMeter(server)).main;
}

async function askMeter(server) {
  rmSync(figure, { force: true });
  server.kill('SIGUSR2');
  while (!existsSync(figure) || readFileSync(figure, 'utf8') === '') await sleep(5);
  return readFileSync(figure, 'utf8');
}

/** Logs in like the page. @returns a function that reads a znode at a zxid */
async function enter(api) {
  const hello = await fetch(`${api}/hello`);
  const { csrf } = await hello.json();
  const [cookie] = hello.headers.get('set-cookie').split(';');
  const headers = { 'content-type': 'application/json', 'x-meerkat-csrf': csrf, cookie };
  const entered = await fetch(`${api}/c/service/login`, { method: 'POST', headers, body: '{"method":"none"}' });
  const renewed = (entered.headers.get('set-cookie') ?? cookie).split(';')[0];
  return async (at) => {
    const answer = await fetch(`${api}/c/service/past/znode?at=${at}&path=/many`, { headers: { cookie: renewed } });
    const { total, message } = await answer.json();
    if (total === undefined) throw new Error(message);
  };
}

function memoryOf({ pid }, field) {
  const [, kib] = new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Math.round(Number(kib) / 1000);
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}
