// Duration of a server's turns for expensive requests, without sockets, disk or other processes:
//
//   node bench/turns.mjs [REPOSITORY]      repository of another build to compare with
//
// Each attack is repeated with the same turns: the figure of a turn is its minimum time, which excludes other load and
// most garbage collections.
import {
  Client,
  core,
  deliver,
  frameOf,
  JuteWriter,
  OPEN_ACL,
  OpCode,
  skipPause,
  start,
  writeRequest,
} from './memory-core.mjs';

const MB = 1_000_000;
const EMPTY = new Uint8Array(0);

/** @returns milliseconds of each turn until there is no more work */
function turnsOf(client, frame) {
  skipPause();
  const turns = [];
  let startedMs = performance.now();
  client.send(frame);
  core.onTurnEnd();
  for (;;) {
    turns.push(performance.now() - startedMs);
    startedMs = performance.now();
    if (!deliver() && core.nextDeadlineMs() !== 0) return turns;
    core.onTurnEnd();
  }
}

function measure(title, attack, times = 16) {
  const runs = Array.from({ length: times }, (_, i) => attack(i)).slice(1);
  const count = Math.max(...runs.map(({ length }) => length));
  const best = Array.from({ length: count }, (_, i) =>
    Math.min(...runs.map((turns) => turns[i] ?? Number.POSITIVE_INFINITY)),
  );
  const all = best.reduce((sum, ms) => sum + ms, 0);
  console.log(`| ${title} | ${count} | ${Math.max(...best).toFixed(1)} ms | ${all.toFixed(0)} ms |`);
}

const createOf = (path, flags = 0, acl = OPEN_ACL) => ({ op: OpCode.create, path, data: EMPTY, acl, flags, ttl: -1 });
const setDataOf = (path) => ({ op: OpCode.setData, path, data: EMPTY, version: -1 });

/** A multi of one megabyte. */
function multiOf(opsOf) {
  const ops = [];
  for (let i = 0, bytes = 0; ; i++) {
    const more = opsOf(i);
    const writer = new JuteWriter();
    writeRequest(writer, { op: OpCode.multi, ops: more });
    bytes += writer.position;
    if (bytes > MB) return frameOf({ op: OpCode.multi, ops });
    ops.push(...more);
  }
}

start();
const client = new Client();
client.ask(createOf('/multi'));
console.log('| request | turns | longest turn | all |\n| --- | ---: | ---: | ---: |');

const creates = multiOf((i) => [createOf(`/multi/${i}`), { op: OpCode.delete, path: `/multi/${i}`, version: -1 }]);
measure('multi, 1 MB of creates and deletes', () => turnsOf(client, creates));
const sets = multiOf(() => [setDataOf('/multi')]);
measure('multi, 1 MB of setData', () => turnsOf(client, sets));

const entries = Array.from({ length: 40_000 }, (_, i) => ({
  perms: 31,
  scheme: 'ip',
  id: `10.0.${i >> 8}.${i & 255}`,
}));
const long = frameOf(createOf('/none/none', 0, entries));
measure('create with 40,000 `ip` entries', () => turnsOf(client, long));

measure(
  'end of a session with 20,000 ephemerals',
  (round) => {
    const owner = new Client();
    for (let i = 0; i < 20; i++) {
      const ops = Array.from({ length: 1000 }, (_, k) => createOf(`/multi/${round}-${i}-${k}`, 1));
      owner.ask({ op: OpCode.multi, ops });
    }
    return turnsOf(owner, frameOf({ op: OpCode.closeSession }));
  },
  8,
);

const watchers = Array.from({ length: 50 }, () => new Client());
for (const watcher of watchers) watcher.ask({ op: OpCode.addWatch, path: '/multi', mode: 0 });
const longMulti = frameOf({ op: OpCode.multi, ops: new Array(2000).fill(setDataOf('/multi')) });
measure('multi of 2,000 setData, 50 watchers', () => turnsOf(client, longMulti));
for (const watcher of watchers) watcher.leave();

const paths = [];
for (let i = 0, bytes = 0; bytes < MB; i++) {
  paths.push(`/many/flat/n${(i * 7919) % MB}`);
  bytes += 4 + paths.at(-1).length;
}
const none = { existWatches: [], childWatches: [], persistentWatches: [], persistentRecursiveWatches: [] };
const restore = frameOf({ op: OpCode.setWatches, relativeZxid: 2 ** 52, dataWatches: paths, ...none });
measure('setWatches, 1 MB of paths', () => turnsOf(client, restore));
