// A server's core in memory, without sockets, disk or other processes. Disk effects complete at once.
import { fileURLToPath } from 'node:url';

/** The first argument of the script: another build to compare with, by the path of its repository. */
const repository = process.argv[2] ?? fileURLToPath(new URL('..', import.meta.url)).replace(/\/$/, '');
const load = (path) => import(`${repository}/packages/${path}`);
const { ServerCore } = await load('core/dist/server-core.js');
const { DEFAULT_CORE_OPTIONS } = await load('core/dist/index.js');
export const { JuteWriter, OPEN_ACL, OpCode, writeConnectRequest, writeRequest } = await load('protocol/dist/index.js');

const EMPTY = new Uint8Array(0);

/** Disk effects whose completion has not been reported yet. */
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
/** How far the core's clock is ahead of real time; `skipPause` advances it to end a pause. */
let aheadMs = 0;
const PAUSE_MS_MAX = 15_000;

export function skipPause() {
  aheadMs += PAUSE_MS_MAX;
}

export const core = new ServerCore(
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

export function deliver() {
  const done = effects;
  effects = [];
  for (const effect of done) effect();
  return done.length > 0;
}

export function run() {
  do core.onTurnEnd();
  while (deliver() || core.nextDeadlineMs() === 0);
}

export class Client {
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
    skipPause();
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

export function frameOf(request) {
  const writer = new JuteWriter();
  const at = writer.beginFrame();
  writer.int(1);
  writer.int(request.op);
  writeRequest(writer, request);
  writer.endFrame(at);
  return writer.toBytes();
}

export function start() {
  core.start();
  run();
}
