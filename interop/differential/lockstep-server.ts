import { FrameStream } from '../harness/frame-stream.ts';
import { connectRequest, Op, readConnectReply, readNotification, readReply } from '../harness/raw-client.ts';
import { record } from '../harness/record-builder.ts';
import { canonicalBody, type Names } from './canonical.ts';
import type { ConnectStep, RequestStep, Step } from './step.ts';

/** The result of a step, comparable with the other server's. */
export interface Outcome {
  /** Watch events on the slot's connection before the reply. */
  readonly notifications: readonly CanonicalNotification[];
  /** Null when the connection was closed instead. */
  readonly reply: CanonicalReply | null;
  /** The connection is closed after the step. */
  readonly isClosed: boolean;
  /** For reporting a difference. */
  readonly sentHex: string;
  readonly receivedHex: string;
}

export interface CanonicalReply {
  readonly xid: number;
  readonly error: number;
  /** In the server's numbering. */
  readonly rawZxid: bigint;
  /** In the script's numbering. */
  readonly zxid: bigint;
  readonly body: string;
  readonly times: readonly bigint[];
}

export interface CanonicalNotification {
  readonly type: number;
  readonly state: number;
  readonly path: string;
  readonly rawZxid: bigint;
  readonly zxid: bigint;
}

const REPLY_MS = 60_000;
const NOTIFICATION_XID = -1;

interface Slot {
  stream: FrameStream | null;
  sessionId: bigint;
  password: Buffer;
  xid: number;
  lastZxid: bigint;
}

/** The server neither answered nor closed the connection. */
export class Silence extends Error {
  readonly server: LockstepServer;

  constructor(server: LockstepServer, message: string) {
    super(message);
    this.server = server;
  }
}

/** One of the two servers, with its own connections, session ids and zxid numbering. */
export class LockstepServer implements Names {
  readonly name: string;
  readonly #port: number;
  readonly #slots: Slot[];
  readonly #sessionNames = new Map<bigint, string>([[0n, 'none']]);
  /** Zxids that only this server used, ascending. */
  readonly #extraZxids: bigint[] = [];

  constructor(name: string, port: number, slots: number) {
    this.name = name;
    this.#port = port;
    this.#slots = Array.from({ length: slots }, () => ({
      stream: null,
      sessionId: 0n,
      password: Buffer.alloc(16),
      xid: 0,
      lastZxid: 0n,
    }));
  }

  canonicalZxid(zxid: bigint): bigint {
    let extra = 0n;
    for (let i = this.#extraZxids.length - 1; i >= 0; i--) {
      const taken = this.#extraZxids[i];
      if (taken !== undefined && taken <= zxid) {
        extra = BigInt(i + 1);
        break;
      }
    }
    return zxid - extra;
  }

  sessionName(id: bigint): string {
    return this.#sessionNames.get(id) ?? `0x${BigInt.asUintN(64, id).toString(16)}`;
  }

  /** Records a zxid that only this server used. */
  noteExtraZxid(zxid: bigint): void {
    this.#extraZxids.push(zxid);
  }

  async perform(step: Step): Promise<Outcome> {
    switch (step.kind) {
      case 'request':
        return this.#request(step);
      case 'connect':
        return this.#connect(step);
      case 'frame': {
        const slot = this.#slot(step.slot);
        const stream = slot.stream;
        if (stream === null) throw new Error('a frame step needs a connection');
        stream.sendRaw(step.bytes);
        return this.#collect(slot, stream, step, step.bytes);
      }
    }
  }

  destroy(): void {
    for (const slot of this.#slots) slot.stream?.destroy();
  }

  async #request(step: RequestStep): Promise<Outcome> {
    const slot = this.#slot(step.slot);
    const stream = slot.stream;
    if (stream === null) throw new Error('a request step needs a connection');
    if (step.xid === null) slot.xid += 1;
    const request = record()
      .int(step.xid ?? slot.xid)
      .int(step.type);
    if (step.relativeZxid !== null) request.long(this.#ownZxid(step.relativeZxid));
    const bytes = request.raw(step.body).build();
    stream.send(bytes);
    return this.#collect(slot, stream, step, bytes);
  }

  async #connect(step: ConnectStep): Promise<Outcome> {
    const slot = this.#slot(step.slot);
    const old = slot.stream;
    // Apache's server forgets the new connection of a session if it notices the end of the old one later.
    if (!step.keepsOldConnection) await old?.end();
    const stream = await FrameStream.open(this.#port);
    slot.stream = stream;
    slot.xid = 0;
    const request = connectRequest({
      timeoutMs: step.timeoutMs,
      readOnly: step.readOnly,
      lastZxidSeen: this.#lastZxidSeen(step, slot),
      ...this.#credentials(step, slot),
    });
    stream.send(request);
    const frame = await this.#nextFrame(stream, step);
    if (step.keepsOldConnection && old !== null) {
      while ((await this.#nextFrame(old, step)) !== null);
    }
    const sent = request.toString('hex');
    if (frame === null) {
      slot.stream = null;
      return { notifications: [], reply: null, isClosed: true, sentHex: sent, receivedHex: '' };
    }
    const answer = readConnectReply(frame);
    const isAccepted = answer.timeoutMs > 0;
    if (isAccepted) {
      if (step.session === 'new') this.#sessionNames.set(answer.sessionId, `S${this.#sessionNames.size}`);
      slot.sessionId = answer.sessionId;
      slot.password = answer.password;
    } else {
      slot.stream = null;
      if ((await this.#nextFrame(stream, step)) !== null) throw new Error('a frame followed a refused session');
    }
    const body =
      `timeout ${answer.timeoutMs} session ${this.sessionName(answer.sessionId)} ` +
      `password of ${answer.password.length} in ${frame.length} bytes`;
    return {
      notifications: [],
      reply: { xid: 0, error: 0, rawZxid: 0n, zxid: 0n, body, times: [] },
      isClosed: !isAccepted,
      sentHex: sent,
      receivedHex: frame.toString('hex'),
    };
  }

  /** Reads frames up to the reply; then, if the protocol requires it, up to the end of the connection. */
  async #collect(slot: Slot, stream: FrameStream, step: Step, sent: Uint8Array): Promise<Outcome> {
    const notifications: CanonicalNotification[] = [];
    const sentHex = Buffer.from(sent).toString('hex');
    for (;;) {
      const frame = await this.#nextFrame(stream, step);
      if (frame === null) {
        slot.stream = null;
        return { notifications, reply: null, isClosed: true, sentHex, receivedHex: '' };
      }
      const reply = readReply(frame);
      if (reply.xid === NOTIFICATION_XID) {
        const event = readNotification(reply);
        const { type, state, path, zxid } = event;
        notifications.push({ type, state, path, rawZxid: zxid, zxid: this.canonicalZxid(zxid) });
        continue;
      }
      if (reply.xid > 0 && reply.zxid > slot.lastZxid) slot.lastZxid = reply.zxid;
      const type = step.kind === 'request' ? step.type : 0;
      const isClosed = closesConnection(type, reply.error, reply.zxid);
      if (isClosed) {
        slot.stream = null;
        if ((await this.#nextFrame(stream, step)) !== null) throw new Error('a frame followed the last reply');
      }
      const body = canonicalBody(type, reply.body, this);
      return {
        notifications,
        reply: {
          xid: reply.xid,
          error: reply.error,
          rawZxid: reply.zxid,
          zxid: this.canonicalZxid(reply.zxid),
          body: body.text,
          times: body.times,
        },
        isClosed,
        sentHex,
        receivedHex: frame.toString('hex'),
      };
    }
  }

  async #nextFrame(stream: FrameStream, step: Step): Promise<Buffer | null> {
    let timer: NodeJS.Timeout | undefined;
    const silence = new Promise<never>((_, reject) => {
      timer = setTimeout(
        () => reject(new Silence(this, `${this.name} neither answered nor closed in ${REPLY_MS} ms: ${step.text}`)),
        REPLY_MS,
      );
    });
    try {
      return await Promise.race([stream.next(), silence]);
    } finally {
      clearTimeout(timer);
    }
  }

  #credentials(step: ConnectStep, slot: Slot): { sessionId: bigint; password: Buffer | null } {
    const { sessionId, password } = slot;
    switch (step.session) {
      case 'new':
        return { sessionId: 0n, password: Buffer.alloc(16) };
      case 'same':
        return { sessionId, password };
      case 'unknown':
        return { sessionId: 0x7f00_0000_1234_5678n, password };
      case 'wrong password':
        return { sessionId, password: Buffer.from(password.map((byte) => byte ^ 1)) };
      case 'null password':
        return { sessionId, password: null };
      case 'short password':
        return { sessionId, password: password.subarray(0, 5) };
    }
  }

  #lastZxidSeen(step: ConnectStep, slot: Slot): bigint {
    switch (step.lastZxidSeen) {
      case 'seen':
        return slot.lastZxid;
      case 'none':
        return 0n;
      case 'future':
        return slot.lastZxid + 1_000_000n;
    }
  }

  /** The inverse of `canonicalZxid`, for zxids used by both servers. */
  #ownZxid(canonical: bigint): bigint {
    let own = canonical;
    for (const extra of this.#extraZxids) {
      if (extra > own) break;
      own += 1n;
    }
    return own;
  }

  #slot(index: number): Slot {
    const slot = this.#slots[index];
    if (slot === undefined) throw new Error(`there is no slot ${index}`);
    return slot;
  }
}

/** The replies after which ZooKeeper closes the connection (docs/protocol/client.md, "Errors"). */
function closesConnection(type: number, error: number, zxid: bigint): boolean {
  const isUnknownOp = error === -6 && zxid === -1n;
  return isUnknownOp || (type === Op.closeSession && error === 0) || (type === Op.auth && error !== 0);
}
