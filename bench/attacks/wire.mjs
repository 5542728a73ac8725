// Minimal client protocol of the attackers: sends frames as fast as possible, counts replies and discards them.
import { connect } from 'node:net';

export const Op = {
  create: 1,
  delete: 2,
  exists: 3,
  getData: 4,
  setData: 5,
  getChildren: 8,
  ping: 11,
  multi: 14,
  removeWatches: 18,
  multiRead: 22,
  auth: 100,
  setWatches: 101,
  getEphemerals: 103,
  getAllChildrenNumber: 104,
  addWatch: 106,
  closeSession: -11,
};

export const OPEN_ACL = [{ perms: 31, scheme: 'world', id: 'anyone' }];
/** jute.maxbuffer: the largest frame that servers accept. */
export const FRAME_BYTES_MAX = 0xfffff;

/** Builds a record. */
export class Bytes {
  #buffer = Buffer.alloc(1024);
  length = 0;

  byte(value) {
    this.#room(1);
    this.#buffer[this.length++] = value;
    return this;
  }

  int(value) {
    this.#room(4);
    this.length = this.#buffer.writeInt32BE(value, this.length);
    return this;
  }

  long(value) {
    this.#room(8);
    this.length = this.#buffer.writeBigInt64BE(BigInt(value), this.length);
    return this;
  }

  text(value) {
    const bytes = Buffer.byteLength(value);
    this.int(bytes).#room(bytes);
    this.length += this.#buffer.write(value, this.length);
    return this;
  }

  data(value) {
    this.int(value.length).#room(value.length);
    value.copy(this.#buffer, this.length);
    this.length += value.length;
    return this;
  }

  texts(values) {
    this.int(values.length);
    for (const value of values) this.text(value);
    return this;
  }

  acl(entries) {
    this.int(entries.length);
    for (const { perms, scheme, id } of entries) this.int(perms).text(scheme).text(id);
    return this;
  }

  /** Header of an op in a multi or multiRead; the op's record follows. */
  part(op) {
    return this.int(op).byte(0).int(-1);
  }

  endOfParts() {
    return this.int(-1).byte(1).int(-1);
  }

  build() {
    return this.#buffer.subarray(0, this.length);
  }

  #room(bytes) {
    if (this.length + bytes <= this.#buffer.length) return;
    const larger = Buffer.alloc(Math.max(this.length + bytes, 2 * this.#buffer.length));
    this.#buffer.copy(larger);
    this.#buffer = larger;
  }
}

export const createRecord = (path, data = Buffer.alloc(0), { acl = OPEN_ACL, flags = 0 } = {}) =>
  new Bytes().text(path).data(data).acl(acl).int(flags);
export const pathRecord = (path) => new Bytes().text(path);
export const watchableRecord = (path, watch = false) => new Bytes().text(path).byte(watch ? 1 : 0);

/** A whole frame: header and record. Servers do not check the xid. */
export function frameOf(op, record = new Bytes(), xid = 1) {
  const body = record.build();
  const frame = Buffer.alloc(12 + body.length);
  frame.writeInt32BE(8 + body.length, 0);
  frame.writeInt32BE(xid, 4);
  frame.writeInt32BE(op, 8);
  body.copy(frame, 12);
  return frame;
}

/** One session on one connection. Only the headers of replies are read. */
export class Attacker {
  /** Number of replies, and their bytes; events are not counted. */
  replies = 0;
  bytes = 0;
  errors = new Map();
  /** Error code of the last reply. */
  lastError = 0;
  isClosed = false;
  #requests = 0;
  #socket;
  #left = 0;
  #header = Buffer.alloc(20);
  #headerBytes = 0;
  #isConnected = false;
  #waiting = [];

  static async connect(port, timeoutMs = 30_000) {
    const attacker = new Attacker();
    await attacker.#open(port, timeoutMs);
    return attacker;
  }

  #open(port, timeoutMs) {
    return new Promise((resolve, reject) => {
      this.#socket = connect({ port, host: '127.0.0.1', noDelay: true });
      this.#socket.on('error', reject);
      this.#socket.on('close', () => {
        this.isClosed = true;
        for (const { fail } of this.#waiting.splice(0)) fail(new Error('the server closed the connection'));
      });
      this.#socket.on('data', (chunk) => this.#onData(chunk));
      const request = new Bytes().int(0).long(0).int(timeoutMs).long(0).data(Buffer.alloc(16)).byte(0).build();
      const length = Buffer.alloc(4);
      length.writeInt32BE(request.length);
      this.#waiting.push({ count: 0, done: resolve, fail: reject });
      this.#socket.write(Buffer.concat([length, request]));
    });
  }

  /** Sends a frame and resolves with the error code of its reply. Replies come in the order of requests. */
  async ask(op, record, xid) {
    this.send(frameOf(op, record, xid));
    await this.answered(this.#requests);
    return this.lastError;
  }

  /** Like `ask`, but throws unless the reply is ok. */
  async demand(op, record) {
    const error = await this.ask(op, record);
    if (error !== 0) throw new Error(`op ${op} failed with ${error}`);
  }

  send(frame) {
    this.#requests++;
    this.#socket.write(frame);
  }

  /** Several frames in one write. */
  sendAll(bytes, count) {
    this.#requests += count;
    this.#socket.write(bytes);
  }

  sendRaw(bytes) {
    this.#socket.write(bytes);
  }

  /** Resolves when `count` replies have arrived since the connection was established. */
  answered(count) {
    if (this.replies >= count) return Promise.resolve();
    if (this.isClosed) return Promise.reject(new Error('the server closed the connection'));
    return new Promise((done, fail) => this.#waiting.push({ count, done, fail }));
  }

  get requests() {
    return this.#requests;
  }

  /** Keeps `depth` requests in flight until `isOver`; `next` returns bytes with `together` requests. */
  async flood(depth, next, isOver, together) {
    while (!isOver()) {
      while (this.#requests - this.replies + together <= depth) this.sendAll(next(), together);
      await this.answered(Math.min(this.#requests, this.replies + Math.max(1, depth >> 1)));
    }
    await this.answered(this.#requests);
  }

  drop() {
    this.#socket.destroy();
  }

  async closed() {
    if (!this.isClosed) await new Promise((resolve) => this.#socket.once('close', resolve));
  }

  #onData(chunk) {
    let at = 0;
    while (at < chunk.length) {
      if (this.#left > 0 && this.#headerBytes === this.#header.length) {
        const skipped = Math.min(this.#left, chunk.length - at);
        this.#left -= skipped;
        at += skipped;
        if (this.#left === 0) this.#headerBytes = 0;
        continue;
      }
      const taken = Math.min(this.#header.length - this.#headerBytes, chunk.length - at);
      chunk.copy(this.#header, this.#headerBytes, at, at + taken);
      this.#headerBytes += taken;
      at += taken;
      if (this.#headerBytes === this.#header.length) this.#onHeader();
    }
  }

  #onHeader() {
    const length = this.#header.readInt32BE(0);
    this.#left = length - 16;
    this.bytes += length;
    if (this.#left === 0) this.#headerBytes = 0;
    if (!this.#isConnected) {
      this.#isConnected = true;
      this.#waiting.shift().done();
      return;
    }
    if (this.#header.readInt32BE(4) === -1) return;
    this.lastError = this.#header.readInt32BE(16);
    this.errors.set(this.lastError, (this.errors.get(this.lastError) ?? 0) + 1);
    this.replies++;
    while (this.#waiting.length > 0 && this.#waiting[0].count <= this.replies) this.#waiting.shift().done();
  }
}
