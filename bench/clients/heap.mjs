// Checks that our client's heap stays flat. Prints one line of JSON: heap bytes after a collection, at several points.
//
//   node --expose-gc heap.mjs PORT OPERATIONS
//
// The first tenth of each workload runs before the first point: tables reach their size and code is compiled.
import { connect } from '../../packages/client/dist/index.js';

const [port, operations] = process.argv.slice(2).map(Number);
const REGISTRATIONS = operations / 10;
const POINTS = 10;
const DEPTH = 100;
const ROOT = '/heap';
const VALUE = new Uint8Array(100).fill(7);

const client = await connect(`127.0.0.1:${port}`, { sessionTimeoutMs: 30_000 });
await client.create(ROOT);
const paths = Array.from({ length: 1000 }, (_, i) => `${ROOT}/${i}`);
for (const path of paths) await client.create(path, VALUE);
const pathOf = (turn) => paths[turn % paths.length];

const measured = {
  operations: await walk(operations, operate),
  streams: await walk(REGISTRATIONS, openAndCloseStream),
  removed: await walk(REGISTRATIONS, leaveAndRemoveWatch),
  fired: await walk(REGISTRATIONS, leaveAndFireWatch),
};
await client.close();
console.log(JSON.stringify(measured));

/** Reads, writes, lookups, and a create and delete in every tenth step. */
async function operate(turn) {
  const path = pathOf(turn);
  switch (turn % 10) {
    case 0:
      return client.create(`${path}/child`, VALUE).then(() => client.delete(`${path}/child`));
    case 1:
    case 2:
      return client.set(path, VALUE);
    case 3:
    case 4:
      return client.exists(path);
    case 5:
      return client.children(path);
    default:
      return client.get(path);
  }
}

async function openAndCloseStream(turn) {
  const stream = client.watch(pathOf(turn));
  await stream.ready;
  await stream[Symbol.asyncDispose]();
}

async function leaveAndRemoveWatch(turn) {
  const path = pathOf(turn);
  await client.get(path, { watch: true });
  await client.removeWatches(path, 'data');
}

async function leaveAndFireWatch(turn) {
  const path = pathOf(turn);
  const { changed } = await client.get(path, { watch: true });
  await client.set(path, VALUE);
  const event = await changed;
  if (event.type !== 'changed' || event.path !== path) throw new Error(`${path}: fired as ${event.type} ${event.path}`);
}

/** Calls `step` `total` times with DEPTH in flight, after a warm-up of a tenth of that. */
async function walk(total, step) {
  let turn = 0;
  const advance = async (steps) => {
    const end = turn + steps;
    const loop = async () => {
      while (turn < end) await step(turn++);
    };
    await Promise.all(Array.from({ length: DEPTH }, loop));
  };
  await advance(total / POINTS);
  const points = [{ count: 0, ...(await heapNow()) }];
  for (let i = 1; i <= POINTS; i++) {
    await advance(total / POINTS);
    points.push({ count: (total / POINTS) * i, ...(await heapNow()) });
  }
  return points;
}

/** Live bytes after two collections with an event loop turn in between, so that finalizers have run. */
async function heapNow() {
  for (let i = 0; i < 2; i++) {
    globalThis.gc();
    await new Promise((resolve) => setImmediate(resolve));
  }
  const { heapUsed, external, rss } = process.memoryUsage();
  return { bytes: heapUsed + external, residentBytes: rss };
}
