import {
  type ConnectResponse,
  EMPTY_BYTES,
  getInt,
  JuteReader,
  JuteWriter,
  OpCode,
  type Request,
  readConnectResponse,
  readReplyHeader,
  readWatcherEvent,
  SpecialXid,
  type WatcherEvent,
  writeConnectRequest,
  writeRequest,
} from '@meerkat/protocol';
import type { VirtualEnd } from '../virtual-network.ts';
import type { VirtualServer } from '../virtual-server.ts';
import type { VirtualWorld } from '../virtual-world.ts';

export interface WireSession {
  /** 0n asks for a new session. */
  readonly sessionId: bigint;
  readonly password: Uint8Array;
}

export interface WireReply {
  readonly xid: number;
  readonly zxid: number;
  /** 0 is ok. */
  readonly error: number;
  readonly body: Uint8Array;
}

export interface WireClientOptions {
  readonly session?: WireSession | undefined;
  /** Milliseconds. Default 4000. */
  readonly timeoutMs?: number | undefined;
  readonly lastZxidSeen?: number | undefined;
  readonly readOnly?: boolean | undefined;
}

/**
 * One connection to one server, on which a story sends byte for byte what any client might send: no pings of its own, no
 * retries, xids chosen by the story. `@meerkat/client` is too well behaved for some schedules.
 */
export class WireClient {
  /** In order of arrival; including replies to pings. */
  readonly replies: WireReply[] = [];
  readonly events: (WatcherEvent & { readonly zxid: number })[] = [];
  /** The server's answer to the connect request. */
  connected: ConnectResponse | null = null;
  isClosed: boolean = false;
  readonly #world: VirtualWorld;
  readonly #end: VirtualEnd;
  readonly #reader = new JuteReader();
  #rest: Uint8Array = EMPTY_BYTES;

  constructor(world: VirtualWorld, host: string, server: VirtualServer, options: WireClientOptions = {}) {
    const { session = NO_SESSION, timeoutMs = 4000, lastZxidSeen = 0, readOnly = false } = options;
    this.#world = world;
    this.#end = world.network.connect(host, server.host, server.port, {
      onOpen: () => {
        const writer = new JuteWriter();
        writeConnectRequest(writer, {
          protocolVersion: 0,
          lastZxidSeen,
          timeoutMs,
          sessionId: session.sessionId,
          password: session.password,
          readOnly,
          hasReadOnlyByte: true,
        });
        this.#end.write(frameOf(writer));
      },
      onFailed: () => {
        this.isClosed = true;
      },
      onBytes: (chunk) => this.#take(chunk),
      onDrain: () => {},
      onClosed: () => {
        this.isClosed = true;
      },
    });
  }

  /** What another connection needs to resume this one's session. */
  get session(): WireSession {
    if (this.connected === null) throw new Error('it has no session yet');
    return this.connected;
  }

  /** True once the server has given or confirmed a session. */
  get hasSession(): boolean {
    return this.connected !== null && this.connected.timeoutMs > 0;
  }

  send(xid: number, request: Request): void {
    this.sendRaw(xid, request.op, (writer) => writeRequest(writer, request));
  }

  /** Any opcode, with any bytes as the body. */
  sendRaw(xid: number, op: number, body: (writer: JuteWriter) => void = () => {}): void {
    const writer = new JuteWriter();
    writer.int(xid);
    writer.int(op);
    body(writer);
    this.#end.write(frameOf(writer));
  }

  ping(): void {
    this.sendRaw(SpecialXid.ping, OpCode.ping);
  }

  replyTo(xid: number): WireReply | null {
    return this.replies.find((reply) => reply.xid === xid) ?? null;
  }

  /** Waits for any answer to the connect request. @throws Error when none comes */
  async whenAnswered(limitMs = 5000): Promise<void> {
    await this.#await(() => this.connected !== null || this.isClosed, 'an answer to its connect request', limitMs);
  }

  /** Sends a request, and waits for the reply. @throws Error when none comes */
  async ask(xid: number, request: Request, limitMs = 5000): Promise<WireReply> {
    this.send(xid, request);
    return this.reply(xid, limitMs);
  }

  async reply(xid: number, limitMs = 5000): Promise<WireReply> {
    await this.#await(() => this.replyTo(xid) !== null || this.isClosed, `the reply to ${xid}`, limitMs);
    const reply = this.replyTo(xid);
    if (reply === null) throw new Error(`the connection was closed before the reply to ${xid} came`);
    return reply;
  }

  async whenClosed(limitMs = 5000): Promise<void> {
    await this.#await(() => this.isClosed, 'the end of the connection', limitMs);
  }

  /** Closes the connection at once. */
  destroy(): void {
    this.isClosed = true;
    this.#end.destroy();
  }

  async #await(holds: () => boolean, what: string, limitMs: number): Promise<void> {
    if (!(await this.#world.until(holds, limitMs, 1))) throw new Error(`${what} did not come within ${limitMs} ms`);
  }

  #take(chunk: Uint8Array): void {
    const bytes = new Uint8Array(this.#rest.length + chunk.length);
    bytes.set(this.#rest);
    bytes.set(chunk, this.#rest.length);
    let at = 0;
    while (at + 4 <= bytes.length) {
      const end = at + 4 + getInt(bytes, at);
      if (end > bytes.length) break;
      this.#reader.reset(bytes, at + 4, end);
      if (this.connected === null) this.connected = readConnectResponse(this.#reader);
      else this.#onReply(bytes.slice(at + 4 + REPLY_HEADER_BYTES, end));
      at = end;
    }
    this.#rest = bytes.slice(at);
  }

  #onReply(body: Uint8Array): void {
    const { xid, zxid, error } = readReplyHeader(this.#reader);
    if (xid === SpecialXid.notification) this.events.push({ ...readWatcherEvent(this.#reader), zxid });
    else this.replies.push({ xid, zxid, error, body });
  }
}

const NO_SESSION: WireSession = { sessionId: 0n, password: new Uint8Array(16) };
const REPLY_HEADER_BYTES = 16;

function frameOf(body: JuteWriter): Uint8Array {
  const bytes = body.toBytes();
  const frame = new JuteWriter();
  frame.int(bytes.length);
  frame.raw(bytes);
  return frame.toBytes();
}
