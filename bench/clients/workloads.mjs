// The workloads, one step at a time, and the checks of every answer: the speed of an incorrect client means nothing.
// Adapters take a callback, `done(error, answer)`, so that clients without promises do not pay for them.

const ZNODES = 64;
/** The whole value is compared in one of this many reads; otherwise its length and the bytes that identify it. */
const THOROUGH = 32;

/** @typedef {'reads, 100 B' | 'reads, 1 KiB' | 'writes, 100 B' | 'exists' | 'create and delete, 100 B'} WorkloadTitle */
export const WORKLOAD_TITLES = ['reads, 100 B', 'reads, 1 KiB', 'writes, 100 B', 'exists', 'create and delete, 100 B'];

/**
 * Creates the znodes of the workloads below `root`, and returns the workloads by title: `step(done)` runs one
 * operation, or two in sequence if `operations` is 2; `verify()` checks the state of the server between slices.
 */
export async function makeWorkloads(client, root) {
  await call(client.create, root, Buffer.alloc(0));
  return new Map([
    ['reads, 100 B', await reads(client, `${root}/small`, 100)],
    ['reads, 1 KiB', await reads(client, `${root}/large`, 1024)],
    ['writes, 100 B', await writes(client, `${root}/write`)],
    ['exists', await exists(client, `${root}/exist`)],
    ['create and delete, 100 B', await createAndDelete(client, `${root}/churn`)],
  ]);
}

async function reads(client, parent, size) {
  const { paths, values } = await makeZnodes(client, parent, size);
  let turn = 0;
  const step = (done) => {
    const which = turn % ZNODES;
    const isThorough = turn++ % THOROUGH === 0;
    client.get(paths[which], (error, data) => {
      if (error) done(error);
      else if (!isSame(data, values[which], isThorough)) done(new Error(`${paths[which]} read with a wrong value`));
      else done(null);
    });
  };
  return { step, operations: 1, verify: async () => {} };
}

/** A session's writes are applied in order, so the last value sent must be the final one. */
async function writes(client, parent) {
  const { paths } = await makeZnodes(client, parent, 100);
  const values = Array.from({ length: 251 }, (_, seed) => makeValue(100, seed));
  const latest = paths.map((_, i) => makeValue(100, i));
  const versions = paths.map(() => 0);
  let turn = 0;
  const step = (done) => {
    const which = turn % ZNODES;
    latest[which] = values[turn++ % values.length];
    client.set(paths[which], latest[which], (error, stat) => {
      if (error) done(error);
      else if (stat.version !== ++versions[which]) done(new Error(`${paths[which]} has version ${stat.version}`));
      else done(null);
    });
  };
  const verify = async () => {
    for (const [i, path] of paths.entries()) {
      if (!isSame(await call(client.get, path), latest[i], true)) throw new Error(`${path} has not what was written`);
    }
  };
  return { step, operations: 1, verify };
}

async function exists(client, parent) {
  const { paths } = await makeZnodes(client, parent, 100);
  let turn = 0;
  const step = (done) => {
    const path = paths[turn++ % ZNODES];
    client.exists(path, (error, stat) => {
      if (error) done(error);
      else if (stat?.dataLength !== 100) done(new Error(`${path} was not seen as it is`));
      else done(null);
    });
  };
  return { step, operations: 1, verify: async () => {} };
}

async function createAndDelete(client, parent) {
  await call(client.create, parent, Buffer.alloc(0));
  const value = makeValue(100, 1);
  let turn = 0;
  const step = (done) => {
    const path = `${parent}/${String(turn++ % 100_000).padStart(5, '0')}`;
    client.create(path, value, (error, created) => {
      if (error) done(error);
      else if (created !== path) done(new Error(`${path} was created as ${created}`));
      else client.delete(path, done);
    });
  };
  const verify = async () => {
    const children = await call(client.children, parent);
    if (children.length !== 0) throw new Error(`${children.length} deleted znodes are still below ${parent}`);
  };
  return { step, operations: 2, verify };
}

async function makeZnodes(client, parent, size) {
  await call(client.create, parent, Buffer.alloc(0));
  const paths = Array.from({ length: ZNODES }, (_, i) => `${parent}/${String(i).padStart(3, '0')}`);
  const values = paths.map((_, i) => makeValue(size, i));
  for (const [i, path] of paths.entries()) await call(client.create, path, values[i]);
  return { paths, values };
}

/** Bytes of all values; the first three and the last identify a seed below 256. */
function makeValue(size, seed) {
  const value = Buffer.alloc(size);
  for (let i = 0; i < size; i++) value[i] = seed * 31 + i * 7 + (i >> 3);
  value[0] = seed;
  value[1] = ~seed;
  value[2] = seed ^ size;
  value[size - 1] = seed;
  return value;
}

function isSame(data, expected, isThorough) {
  if (data.length !== expected.length) return false;
  if (isThorough) return expected.equals(data);
  return (
    data[0] === expected[0] && data[1] === expected[1] && data[2] === expected[2] && data.at(-1) === expected.at(-1)
  );
}

export function call(operation, ...args) {
  return new Promise((resolve, reject) =>
    operation(...args, (error, answer) => (error ? reject(error) : resolve(answer))),
  );
}
