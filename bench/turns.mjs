// How long the turns of a server are that costly requests take, without sockets, disk and other processes:
//
//   node bench/turns.mjs [REPOSITORY]      another build to compare with, by the path of its repository
//
// The core runs on a disk that takes everything at once. Each attack is made some times, with the same turns each time: the
// figure of a turn is its shortest time, which leaves out what else the machine did meanwhile, and most collections of garbage.
import { fileURLToPath } from 'node:url';

const repository = process.argv[2] ?? fileURLToPath(new URL('..', import.meta.url)).replace(/\/$/, '');
const load = (path) => import(`${repository}/packages/${path}`);
const { ServerCore } = await load('core/dist/server-core.js');
const { DEFAULT_CORE_OPTIONS } = await load('core/dist/index.js');
const { JuteWriter, OPEN_ACL, OpCode, writeConnectRequest, writeRequest } = await load('protocol/dist/index.js');

const MB = 1_000_000;
const EMPTY = new Uint8Array(0);

/** Effects of the disk that have not been told yet. */
let effects = [];

class NullFile {
  size = 0;
  read(_position, _length, done) {
    effects.push(() => done(null, EMPTY));
  }
  write(position, bytes, done) {
    this.size = Math.max(this.size, position + bytes.length);
    effects.push(() => done(null));
  }
  note() {}
  sync(done) {
    effects.push(() => done(null));
  }
  preallocate(size, done) {
    this.size = size;
    effects.push(() => done(null));
  }
  truncate(size, done) {
    this.preallocate(size, done);
  }
  close() {}
}

class NullDisk {
  #files = new Map();
  makeDirectory = (_path, done) => effects.push(() => done(null));
  syncDirectory = this.makeDirectory;
  hold = this.makeDirectory;
  rename = (_source, _target, done) => effects.push(() => done(null));
  list = (_path, done) => effects.push(() => done(null, []));
  release() {}
  open(path, _options, done) {
    const file = this.#files.get(path);
    effects.push(() => done(file === undefined ? { code: 'ENOENT', message: path } : null, file));
  }
  create(path, done) {
    const file = new NullFile();
    this.#files.set(path, file);
    effects.push(() => done(null, file));
  }
  remove(path, done) {
    this.#files.delete(path);
    effects.push(() => done(null));
  }
}

let random = 0;
/** By which the core's clock is ahead of time: whoever is to pause has done so when he asks again. */
let aheadMs = 0;
const PAUSE_MS_MAX = 5000;

const core = new ServerCore(
  {
    clock: { monotonicMs: () => performance.now() + aheadMs, wallMs: () => Date.now() },
    random: { uint32: () => (random = (random + 0x9e3779b9) >>> 0) },
    network: {},
    disk: new NullDisk(),
    authenticator: {
      initialIdentities: () => [{ scheme: 'ip', id: '10.0.0.1' }],
      isAdmitted: () => true,
      isValidAclId: () => true,
      isAuthenticatedScheme: () => false,
      isExact: () => false,
      matches: () => false,
      refusalOf: () => null,
    },
    trace: { emit() {} },
  },
  { ...DEFAULT_CORE_OPTIONS, snapshotDirectory: '/d', logDirectory: '/d', connectionsPerHostMax: 0, snapCount: 2e9 },
  { fourLetterWords: () => ({ isWord: () => false }) },
  {
    onServing() {},
    onStopped() {},
    onFailed(error) {
      throw error;
    },
  },
);

function deliver() {
  const done = effects;
  effects = [];
  for (const effect of done) effect();
  return done.length > 0;
}

function run() {
  do core.onTurnEnd();
  while (deliver() || core.nextDeadlineMs() === 0);
}

class Client {
  remote = { ip: Uint8Array.of(10, 0, 0, 1), host: '10.0.0.1', port: 1 };
  queuedBytes = 0;
  #events = core.onStreamOpened(this);

  constructor() {
    const record = { protocolVersion: 0, lastZxidSeen: 0, timeoutMs: 60_000, sessionId: 0n, readOnly: false };
    const writer = new JuteWriter();
    const at = writer.beginFrame();
    writeConnectRequest(writer, { ...record, password: new Uint8Array(16), hasReadOnlyByte: true });
    writer.endFrame(at);
    this.send(writer.toBytes());
    run();
  }

  send(bytes) {
    this.#events.onBytes(bytes.slice());
  }

  ask(request) {
    aheadMs += PAUSE_MS_MAX;
    this.send(frameOf(request));
    run();
  }

  leave() {
    this.#events.onClosed('it is gone');
    run();
  }

  write() {}
  end() {}
  destroy() {}
  pause() {}
  resume() {}
}

function frameOf(request) {
  const writer = new JuteWriter();
  const at = writer.beginFrame();
  writer.int(1);
  writer.int(request.op);
  writeRequest(writer, request);
  writer.endFrame(at);
  return writer.toBytes();
}

/** @returns milliseconds of each turn until there is nothing left to do */
function turnsOf(client, frame) {
  aheadMs += PAUSE_MS_MAX;
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

/** A multi of a megabyte. */
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

core.start();
run();
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
const told = frameOf({ op: OpCode.multi, ops: new Array(2000).fill(setDataOf('/multi')) });
measure('multi of 2,000 setData, 50 watchers', () => turnsOf(client, told));
for (const watcher of watchers) watcher.leave();

const paths = [];
for (let i = 0, bytes = 0; bytes < MB; i++) {
  paths.push(`/many/flat/n${(i * 7919) % MB}`);
  bytes += 4 + paths.at(-1).length;
}
const none = { existWatches: [], childWatches: [], persistentWatches: [], persistentRecursiveWatches: [] };
const restore = frameOf({ op: OpCode.setWatches, relativeZxid: 2 ** 52, dataWatches: paths, ...none });
measure('setWatches, 1 MB of paths', () => turnsOf(client, restore));
