// CPU time of the core's thread per request, without sockets and disk, and the cost of idle sessions:
//
//   node --expose-gc bench/request-cost.mjs [REPOSITORY]      repository of another build to compare with
//
// 16 clients send requests in each turn; a figure is the minimum of many rounds, which excludes other load. V8 inlines
// as much as in `meerkat server`. The figures include garbage collection, also in other threads.
import { inlineMore } from '../packages/server/dist/compiler.js';
import { Client, frameOf, OPEN_ACL, OpCode, run, start } from './memory-core.mjs';

if (globalThis.gc === undefined) throw new Error('what idle sessions take needs node --expose-gc');
inlineMore();

const ROUNDS = 60;
const WARM_UP = 60;
const TURNS = 64;
const ZNODES = 1000;
const IDLE = [10_000, 50_000];
const PINGS_PER_TURN = 20;

const [small, large] = [100, 1024].map((length) => new Uint8Array(length).fill(97));
const createOf = (path) => ({ op: OpCode.create, path, data: small, acl: OPEN_ACL, flags: 0, ttl: -1 });
const setDataOf = (path, data) => ({ op: OpCode.setData, path, data, version: -1 });
let last = 0;
/** Successive znodes, far from each other. */
const somewhere = () => {
  last = (last + 617) % ZNODES;
  return `/znodes/${last}`;
};

/** Number of requests per client and turn, and the i-th request of client c. */
const WORK = {
  'getData, 100 B': [16, () => ({ op: OpCode.getData, path: somewhere(), watch: false })],
  'setData, 100 B': [16, () => setDataOf(somewhere(), small)],
  'setData, 1 KiB': [16, () => setDataOf(somewhere(), large)],
  'create and delete, 100 B': [
    16,
    (i, c) => {
      const path = `/znodes/${c}-${i >> 1}`;
      return i % 2 === 0 ? createOf(path) : { op: OpCode.delete, path, version: -1 };
    },
  ],
  'multi of 10 setData, 100 B': [
    4,
    () => ({ op: OpCode.multi, ops: Array.from({ length: 10 }, () => setDataOf(somewhere(), small)) }),
  ],
};

start();
const [maker, ...clients] = Array.from({ length: 17 }, () => new Client());
maker.ask(createOf('/znodes'));
for (let i = 0; i < ZNODES; i++) maker.ask(createOf(`/znodes/${i}`));

console.log('| request | of the core |\n| --- | ---: |');
for (const [title, [count, requestOf]] of Object.entries(WORK)) {
  const turns = Array.from({ length: TURNS }, () =>
    clients.map((_, c) => Buffer.concat(Array.from({ length: count }, (_, i) => frameOf(requestOf(i, c))))),
  );
  const round = () => {
    for (const turn of turns) {
      for (const [i, client] of clients.entries()) client.send(turn[i]);
      run();
    }
  };
  for (let i = 0; i < WARM_UP; i++) round();
  console.log(`| ${title} | ${(leastOf(round) / (TURNS * clients.length * count)).toFixed(2)} µs |`);
}

console.log('\n| idle sessions | KiB of each | a ping, of the core |\n| --- | ---: | ---: |');
const ping = Uint8Array.of(0, 0, 0, 8, 255, 255, 255, 254, 0, 0, 0, 11);
const idle = [];
for (const count of IDLE) {
  const before = usedBytes();
  const more = count - idle.length;
  for (let i = 0; i < more; i++) idle.push(new Client());
  const bytes = (usedBytes() - before) / more;
  const round = () => {
    for (let i = 0; i < count; i += PINGS_PER_TURN) {
      for (let k = i; k < i + PINGS_PER_TURN; k++) idle[k].send(ping);
      run();
    }
  };
  round();
  const us = leastOf(round) / count;
  console.log(`| ${count.toLocaleString('en')} | ${(bytes / 1024).toFixed(2)} | ${us.toFixed(2)} µs |`);
}
process.exit(0);

/** @returns microseconds of CPU time */
function leastOf(round) {
  let least = Number.POSITIVE_INFINITY;
  for (let i = 0; i < ROUNDS; i++) {
    const before = process.cpuUsage();
    round();
    const { user, system } = process.cpuUsage(before);
    least = Math.min(least, user + system);
  }
  return least;
}

function usedBytes() {
  globalThis.gc();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
