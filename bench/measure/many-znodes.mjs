// A server with a million znodes of 100 B: memory, restarts, and the longest latency while a snapshot is taken.
import { closeSync, existsSync, openSync, readFileSync, readSync, rmSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Server } from '../engine.mjs';
import { zkload } from '../load-generator.mjs';
import { locked } from '../measure-lock.mjs';

const METER = new URL('../turn-meter.mjs', import.meta.url).href;
/** Txns between snapshots: practically never, and after five to ten thousand of them (ZooKeeper draws at random). */
const NO_SNAPSHOT = { snapCount: 2_000_000_000 };
const SNAPSHOT_SOON = { snapCount: 10_000 };

export async function measureManyZnodes(engines, directory, { znodes, restarts }, progress) {
  const fill = { count: znodes, size: 100, conns: 16, depth: 32 };
  const servers = engines.map((engine) => new Server(engine, join(directory, `many-${engine.name}`), NO_SNAPSHOT));
  const memory = newFigures();
  const fromLog = newFigures();
  const fromSnapshot = newFigures();
  const turn = newFigures();
  const wait = newFigures();

  for (const server of servers) {
    const { name } = server.engine;
    progress(`${name}: creating ${znodes} znodes`);
    await locked(async () => {
      await server.start();
      await zkload('fill', server, fill);
      memory[name].push(server.residentMb());
    });
    await server.kill();
  }

  await alternate(servers, restarts, async (server) => {
    progress(`${server.engine.name}: restart from the log`);
    server.forgetSnapshots();
    fromLog[server.engine.name].push(await server.start());
    await zkload('verify', server, fill);
    await server.kill();
  });

  for (const server of servers) {
    progress(`${server.engine.name}: a snapshot while clients read`);
    server.settings = SNAPSHOT_SOON;
    const { longestTurnMs, longestWaitMs } = await locked(() => watchSnapshot(server));
    if (longestTurnMs !== null) turn[server.engine.name].push(longestTurnMs);
    wait[server.engine.name].push(longestWaitMs);
    await server.kill();
    server.settings = NO_SNAPSHOT;
  }

  await alternate(servers, restarts, async (server) => {
    progress(`${server.engine.name}: restart from the snapshot`);
    fromSnapshot[server.engine.name].push(await server.start());
    await zkload('verify', server, fill);
    await server.kill();
  });
  for (const server of servers) await server.destroy();

  const many = `${znodes.toLocaleString('en-US')} znodes of 100 B`;
  // The limits apply to a million znodes.
  const limits = (must, aim) => (znodes === 1_000_000 ? { must: { valueMax: must }, aim: { valueMax: aim } } : {});
  return [
    row(`${many}: resident`, 'MB', memory, limits(600, 400)),
    row(`${many}: restart from the log`, 'ms', fromLog, limits(1500, 1000)),
    row(`${many}: restart from a snapshot`, 'ms', fromSnapshot, limits(1500, 1000)),
    row(`${many}: longest turn while a snapshot is taken`, 'ms', turn, limits(20, 5)),
    row(`${many}: longest wait of a read meanwhile`, 'ms', wait, {}),
  ].filter(({ meerkat }) => meerkat.length > 0);
}

const newFigures = () => ({ apache: [], meerkat: [] });

const row = (title, unit, figures, limits) => ({
  title,
  unit,
  reference: figures.apache,
  meerkat: figures.meerkat,
  ...limits,
});

async function alternate(servers, times, measure) {
  for (let i = 0; i < times; i++) {
    for (const server of i % 2 === 0 ? servers : servers.toReversed()) await locked(() => measure(server));
  }
}

/**
 * Starts the server, triggers a snapshot with a few writes during a steady load of a thousand reads a second, and
 * returns the longest delay of the event loop (null if the server is not Node.js) and of a read.
 */
async function watchSnapshot(server) {
  const meterFile = join(server.directory, 'turn');
  const isNode = basename(server.engine.command[0]).startsWith('node');
  const environment = { NODE_OPTIONS: `--import ${METER}`, TURN_METER_FILE: meterFile };
  await server.start(isNode ? environment : {});
  await quiet(server);
  const before = new Set(server.snapshots().map(({ name }) => name));
  const stream = zkload('load', server, {
    read: 100,
    size: 100,
    conns: 1,
    depth: 64,
    root: '/zkturn',
    rate: 1000,
    warmup: 1,
    secs: 15,
  });
  // A violation is reported where the stream is awaited.
  stream.catch(() => {});
  await sleep(2000);
  if (isNode) await readMeter(server, meterFile);
  await zkload('fill', server, { count: 10_001, size: 100, conns: 1, depth: 4, root: '/zktrigger' });
  await waitFor(30_000, 'a snapshot', () =>
    server
      .snapshots()
      .some(
        ({ name }) => name.startsWith('snapshot.') && !before.has(name) && isComplete(join(server.dataDirectory, name)),
      ),
  );
  const longestTurnMs = isNode ? await readMeter(server, meterFile) : null;
  const { lat_us } = await stream;
  return { longestTurnMs, longestWaitMs: lat_us.all.max / 1000 };
}

/** Waits until no snapshot has been written for three seconds: servers may take one at or after the start. */
async function quiet(server) {
  let last = '';
  let since = performance.now();
  await waitFor(120_000, 'the end of snapshots', () => {
    const now = JSON.stringify(server.snapshots());
    if (now !== last) since = performance.now();
    last = now;
    return performance.now() - since > 3000;
  });
}

/** A snapshot ends with the path "/" that closes its seal. */
function isComplete(file) {
  const size = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  if (size < 5) return false;
  const tail = Buffer.alloc(5);
  const fd = openSync(file, 'r');
  readSync(fd, tail, 0, 5, size - 5);
  closeSync(fd);
  return tail.equals(Buffer.from([0, 0, 0, 1, 0x2f]));
}

async function readMeter(server, file) {
  rmSync(file, { force: true });
  server.child.kill('SIGUSR2');
  await waitFor(5000, 'the turn meter', () => existsSync(file) && readFileSync(file, 'utf8').endsWith('\n'));
  return Number(readFileSync(file, 'utf8'));
}

async function waitFor(limitMs, what, isDone) {
  const end = performance.now() + limitMs;
  while (!isDone()) {
    if (performance.now() > end) throw new Error(`waited ${limitMs / 1000} s for ${what} without success`);
    await sleep(50);
  }
}
