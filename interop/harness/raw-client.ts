import { FrameStream } from './frame-stream.ts';
import { record } from './record-builder.ts';
import { RecordReader } from './record-reader.ts';

/** Op codes on the wire, deliberately defined independently of the protocol package. */
export const Op = {
  create: 1,
  delete: 2,
  exists: 3,
  getData: 4,
  setData: 5,
  getACL: 6,
  setACL: 7,
  getChildren: 8,
  sync: 9,
  ping: 11,
  getChildren2: 12,
  check: 13,
  multi: 14,
  create2: 15,
  reconfig: 16,
  checkWatches: 17,
  removeWatches: 18,
  createContainer: 19,
  deleteContainer: 20,
  createTTL: 21,
  multiRead: 22,
  auth: 100,
  setWatches: 101,
  sasl: 102,
  getEphemerals: 103,
  getAllChildrenNumber: 104,
  setWatches2: 105,
  addWatch: 106,
  whoAmI: 107,
  closeSession: -11,
} as const;

export interface ConnectOptions {
  readonly timeoutMs?: number;
  /** 0 requests a new session. */
  readonly sessionId?: bigint;
  readonly password?: Uint8Array | null;
  readonly lastZxidSeen?: bigint;
  /** Null omits the byte, like the oldest clients. */
  readonly readOnly?: boolean | null;
  /** Sends no automatic pings. Default false. */
  readonly isSilent?: boolean;
}

export interface ConnectReply {
  readonly timeoutMs: number;
  readonly sessionId: bigint;
  readonly password: Buffer;
}

export interface Reply {
  readonly xid: number;
  readonly zxid: bigint;
  readonly error: number;
  readonly body: Buffer;
}

export interface Notification {
  readonly zxid: bigint;
  readonly type: number;
  readonly state: number;
  readonly path: string;
}

export function connectRequest(options: ConnectOptions): Buffer {
  const { timeoutMs = 30_000, sessionId = 0n, password = Buffer.alloc(16), lastZxidSeen = 0n } = options;
  const request = record().int(0).long(lastZxidSeen).int(timeoutMs).long(sessionId).buffer(password);
  const readOnly = options.readOnly === undefined ? false : options.readOnly;
  return (readOnly === null ? request : request.bool(readOnly)).build();
}

export function readConnectReply(frame: Buffer): ConnectReply {
  const reader = new RecordReader(frame);
  reader.int();
  const timeoutMs = reader.int();
  const sessionId = reader.long();
  return { timeoutMs, sessionId, password: Buffer.from(reader.buffer() ?? Buffer.alloc(0)) };
}

export function readReply(frame: Buffer): Reply {
  const reader = new RecordReader(frame);
  return { xid: reader.int(), zxid: reader.long(), error: reader.int(), body: reader.rest() };
}

export function readNotification(reply: Reply): Notification {
  const reader = new RecordReader(reply.body);
  return { zxid: reply.zxid, type: reader.int(), state: reader.int(), path: reader.ustring() ?? '' };
}

const NOTIFICATION_XID = -1;

/** The connection was closed while waiting for a reply. */
export class ConnectionClosed extends Error {
  constructor() {
    super('the server closed the connection before the reply came');
  }
}

/**
 * A raw protocol client for tests: any op, any bytes, pipelined. It does not reconnect or remember watches; it only
 * pings when it has sent nothing for a quarter of its session timeout, because on a busy machine a test may take longer
 * than the timeout between two requests.
 */
export class RawClient {
  readonly sessionId: bigint;
  readonly password: Buffer;
  readonly timeoutMs: number;
  /** Watch events in the order of their arrival. */
  readonly notifications: Notification[] = [];
  /** Settles when the connection is closed. */
  readonly closed: Promise<void>;
  /** Highest zxid seen in a reply. */
  lastZxid = 0n;
  readonly #stream: FrameStream;
  readonly #pending: { resolve: (reply: Reply) => void; reject: (error: Error) => void }[] = [];
  readonly #notified: (() => void)[] = [];
  readonly #pings: NodeJS.Timeout | null;
  #hasSent = false;
  #xid = 0;

  /** Connects and requests a session; throws when the server closes the connection or refuses the session. */
  static async connect(port: number, options: ConnectOptions = {}): Promise<RawClient> {
    const stream = await FrameStream.open(port);
    stream.send(connectRequest(options));
    const frame = await stream.next();
    if (frame === null) throw new Error('the server closed the connection instead of answering the connect request');
    const reply = readConnectReply(frame);
    if (reply.timeoutMs <= 0) {
      stream.destroy();
      throw new Error(`session 0x${(options.sessionId ?? 0n).toString(16)} refused: it is expired or unknown`);
    }
    return new RawClient(stream, reply, options.isSilent ?? false);
  }

  private constructor(stream: FrameStream, reply: ConnectReply, isSilent: boolean) {
    this.#stream = stream;
    this.sessionId = reply.sessionId;
    this.password = reply.password;
    this.timeoutMs = reply.timeoutMs;
    this.#pings = isSilent ? null : setInterval(() => this.#pingIfIdle(), this.timeoutMs / 4);
    this.#pings?.unref();
    this.closed = this.#readFrames();
  }

  /** Options for `connect` to resume the session. */
  get credentials(): { sessionId: bigint; password: Buffer; lastZxidSeen: bigint; timeoutMs: number } {
    const { sessionId, password, lastZxid, timeoutMs } = this;
    return { sessionId, password, lastZxidSeen: lastZxid, timeoutMs };
  }

  /** Sends a request. Any number may be in flight; replies come in the order of requests. */
  request(type: number, body: Uint8Array = Buffer.alloc(0), xid?: number): Promise<Reply> {
    if (xid === undefined) {
      this.#xid += 1;
    }
    this.#hasSent = true;
    const header = record()
      .int(xid ?? this.#xid)
      .int(type);
    this.#stream.send(header.raw(body).build());
    return new Promise((resolve, reject) => {
      if (this.#stream.isClosed) reject(new ConnectionClosed());
      else this.#pending.push({ resolve, reject });
    });
  }

  /** Like `request`, but throws if the reply is an error. */
  async demand(type: number, body?: Uint8Array, xid?: number): Promise<Reply> {
    const reply = await this.request(type, body, xid);
    if (reply.error !== 0) throw new Error(`op ${type} failed with ${reply.error}`);
    return reply;
  }

  auth(scheme: string, credentials: string): Promise<Reply> {
    return this.demand(Op.auth, record().int(0).ustring(scheme).buffer(credentials).build(), -4);
  }

  ping(): Promise<Reply> {
    return this.demand(Op.ping, undefined, -2);
  }

  /** Waits until `count` notifications have arrived in total. */
  async waitForNotifications(count: number): Promise<readonly Notification[]> {
    while (this.notifications.length < count) {
      if (this.#stream.isClosed) throw new ConnectionClosed();
      await new Promise<void>((resolve) => this.#notified.push(resolve));
    }
    return this.notifications;
  }

  /** Closes the session. */
  async close(): Promise<void> {
    this.#endPings();
    await this.request(Op.closeSession).catch(() => undefined);
    this.destroy();
    await this.closed;
  }

  /** Drops the connection; the session remains until it expires. */
  destroy(): void {
    this.#endPings();
    this.#stream.destroy();
  }

  #pingIfIdle(): void {
    if (!this.#hasSent) this.ping().catch(() => undefined);
    this.#hasSent = false;
  }

  #endPings(): void {
    if (this.#pings !== null) clearInterval(this.#pings);
  }

  async #readFrames(): Promise<void> {
    for (let frame = await this.#stream.next(); frame !== null; frame = await this.#stream.next()) {
      const reply = readReply(frame);
      if (reply.xid === NOTIFICATION_XID) {
        this.notifications.push(readNotification(reply));
        for (const resolve of this.#notified.splice(0)) resolve();
        continue;
      }
      if (reply.zxid > this.lastZxid) this.lastZxid = reply.zxid;
      this.#pending.shift()?.resolve(reply);
    }
    this.#endPings();
    for (const pending of this.#pending.splice(0)) pending.reject(new ConnectionClosed());
    for (const resolve of this.#notified.splice(0)) resolve();
  }
}
