// How long after its reply a txn reaches the backup of `meerkat backup --follow`: a client writes, and the backup files
// are polled for the written marks.
//
//   node bench/backup-lag.mjs [--secs 20] [--rate 100]
//
//   --rate   writes of 1 KiB a second
import { mkdirSync, mkdtempSync, openSync, readdirSync, readSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { connect } from '../packages/client/dist/index.js';
import { freePort, meerkatEngine, Server } from './engine.mjs';
import { BENCH_DIRECTORY, buildLoadGenerator } from './load-generator.mjs';
import { killAll, start } from './processes.mjs';

const { values } = parseArgs({
  options: { secs: { type: 'string', default: '20' }, rate: { type: 'string', default: '100' } },
});
const MEERKAT = fileURLToPath(new URL('../packages/cli/bin/meerkat.js', import.meta.url));
const POLL_MS = 2;
const MARK = /mark (\d+) /g;
/** A mark may span two chunks. */
const MARK_CHARS_MAX = 32;
const USER = 'super:secret';
/** Digest of that user and password, from `DigestAuthenticationProvider`. */
const SUPER_DIGEST = 'super:lK75jTNcA+U9vtVEw5vB51mj/w4=';

mkdirSync(BENCH_DIRECTORY, { recursive: true });
const directory = mkdtempSync(join(BENCH_DIRECTORY, 'backup-lag-'));
process.on('exit', () => {
  killAll();
  rmSync(directory, { recursive: true, force: true });
});

/** Records when each mark was first seen below a directory. */
class Files {
  #root;
  #read = new Map();

  constructor(root) {
    this.#root = root;
  }

  look(onMark) {
    for (const name of readdirSync(this.#root, { recursive: true })) {
      const path = join(this.#root, name);
      const stat = statSync(path, { throwIfNoEntry: false });
      if (stat === undefined || !stat.isFile()) continue;
      const file = this.#read.get(path) ?? { fd: openSync(path, 'r'), at: 0, rest: '' };
      this.#read.set(path, file);
      const bytes = Buffer.alloc(Math.max(0, stat.size - file.at));
      const count = readSync(file.fd, bytes, 0, bytes.length, file.at);
      if (count === 0) continue;
      file.at += count;
      const text = file.rest + bytes.toString('latin1', 0, count);
      for (const [, number] of text.matchAll(MARK)) onMark(Number(number));
      file.rest = text.slice(-MARK_CHARS_MAX);
    }
  }
}

await buildLoadGenerator(() => {});
const adminPort = await freePort();
const server = new Server(meerkatEngine(), join(directory, 'server'), {
  'admin.enableServer': true,
  'admin.serverPort': adminPort,
  'DigestAuthenticationProvider.superDigest': SUPER_DIGEST,
});
await server.start();
const backup = join(directory, 'backup');
mkdirSync(backup);
const words = [
  'backup',
  '--to',
  backup,
  '--server',
  `127.0.0.1:${server.port}`,
  '--admin',
  `http://127.0.0.1:${adminPort}`,
];
start(process.execPath, [MEERKAT, ...words, '--auth', `digest:${USER}`, '--follow'], {
  stdio: ['ignore', 'ignore', 'inherit'],
});
const client = await connect(`127.0.0.1:${server.port}`);
await client.create('/lag', '');

const repliedMs = new Map();
const seenMs = new Map();
const files = new Files(backup);
let isOver = false;
const looking = (async () => {
  while (!isOver) {
    files.look((number) => {
      if (!seenMs.has(number)) seenMs.set(number, performance.now());
    });
    await sleep(POLL_MS);
  }
})();
// Writes until the backup has started.
for (let number = 0; seenMs.size === 0; number--) {
  await client.set('/lag', `mark ${-number} `);
  await sleep(100);
}
const count = Number(values.secs) * Number(values.rate);
const padding = 'x'.repeat(1000);
const writes = [];
const startedMs = performance.now();
for (let i = 0; i < count; i++) {
  const number = 1_000_000 + i;
  await sleep(startedMs + (i * 1000) / Number(values.rate) - performance.now());
  writes.push(client.set('/lag', `mark ${number} ${padding}`).then(() => repliedMs.set(number, performance.now())));
}
await Promise.all(writes);
for (let i = 0; i < 500 && ![...repliedMs.keys()].every((number) => seenMs.has(number)); i++) await sleep(20);
isOver = true;
await looking;
await client.close();
const lags = [...repliedMs]
  .map(([number, at]) => (seenMs.get(number) ?? Number.POSITIVE_INFINITY) - at)
  .sort((a, b) => a - b);
const at = (part) => `${Math.max(0, lags[Math.min(lags.length - 1, Math.floor(lags.length * part))]).toFixed(0)} ms`;
console.log('| from the reply to the backup | p50 | p99 | longest |\n| --- | ---: | ---: | ---: |');
console.log(`| ${count} writes of 1 KiB, ${values.rate} a second | ${at(0.5)} | ${at(0.99)} | ${at(1)} |`);
await server.destroy();
process.exit(0);
