import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** The ops of 3.4 (`ZooDefs.OpCode` and `Request.isValid` of that version). */
const KNOWN_OPS: ReadonlySet<number> = new Set([1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 14, 100, 101, 102, -11]);
const NOTIFICATION_XID = -1;
/** Added in 3.5. Replaced with a name of the same length that does not exist. */
const CONFIG_PATH = '/zookeeper/config';

/**
 * A proxy that makes a newer server look like one of 3.4: newer requests are answered with UNIMPLEMENTED, zxid -1, and
 * their connection is closed, as by `UnimplementedRequestProcessor`; and /zookeeper/config does not exist.
 */
export class OldServer implements AsyncDisposable {
  readonly port: number;
  /** Op codes of refused requests. */
  readonly refusedOps: number[];
  readonly #close: () => void;

  static async start(target: number): Promise<OldServer> {
    const refusedOps: number[] = [];
    const sockets = new Set<Socket>();
    const listener = createServer({ noDelay: true }, (client) => {
      const server = connect({ host: '127.0.0.1', port: target, noDelay: true });
      for (const [one, other] of [
        [client, server],
        [server, client],
      ] as const) {
        sockets.add(one);
        one.on('error', () => undefined);
        one.on('close', () => {
          sockets.delete(one);
          other.destroy();
        });
      }
      server.on('end', () => client.end());
      new Connection(client, server, refusedOps);
    });
    listener.listen(0, '127.0.0.1');
    await once(listener, 'listening');
    return new OldServer((listener.address() as AddressInfo).port, refusedOps, () => {
      listener.close();
      for (const socket of sockets) socket.destroy();
    });
  }

  private constructor(port: number, refusedOps: number[], close: () => void) {
    this.port = port;
    this.refusedOps = refusedOps;
    this.#close = close;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#close();
  }
}

/** One client's connection, and that to the server which it is passed to. */
class Connection {
  readonly #client: Socket;
  readonly #server: Socket;
  readonly #refusedOps: number[];
  /** Requests that the server has not answered. */
  #unanswered = 0;
  #isConnected = false;
  /** The request that is, or will be, refused; later ones are ignored. */
  #refused: Buffer | null = null;

  constructor(client: Socket, server: Socket, refusedOps: number[]) {
    this.#client = client;
    this.#server = server;
    this.#refusedOps = refusedOps;
    const requests = new Frames((frame) => this.#onRequest(frame));
    const replies = new Frames((frame) => this.#onReply(frame));
    client.on('data', (chunk) => requests.add(chunk));
    server.on('data', (chunk) => {
      if (client.writableEnded) return;
      client.write(chunk);
      replies.add(chunk);
    });
  }

  #onRequest(frame: Buffer): void {
    if (this.#refused !== null) return;
    // The connect request has no header.
    if (this.#isConnected && !KNOWN_OPS.has(frame.readInt32BE(8))) {
      this.#refused = frame;
      this.#refuseInOrder();
      return;
    }
    this.#isConnected = true;
    this.#unanswered++;
    this.#server.write(withoutConfig(frame));
  }

  #onReply(frame: Buffer): void {
    // The answer to a four-letter word is no reply, and may be shorter than one.
    if (frame.length < 8 || frame.readInt32BE(4) === NOTIFICATION_XID) return;
    this.#unanswered--;
    this.#refuseInOrder();
  }

  /** Behind the replies to earlier requests, as a server does. */
  #refuseInOrder(): void {
    if (this.#refused === null || this.#unanswered > 0) return;
    this.#refusedOps.push(this.#refused.readInt32BE(8));
    const reply = Buffer.alloc(20);
    reply.writeInt32BE(16, 0);
    reply.writeInt32BE(this.#refused.readInt32BE(4), 4);
    reply.writeBigInt64BE(-1n, 8);
    reply.writeInt32BE(-6, 16);
    this.#client.end(reply);
  }
}

/** Splits bytes into frames. A four-letter word, or the answer to one, is passed as it comes. */
class Frames {
  readonly #onFrame: (frame: Buffer) => void;
  #input: Buffer = Buffer.alloc(0);

  constructor(onFrame: (frame: Buffer) => void) {
    this.#onFrame = onFrame;
  }

  add(chunk: Buffer): void {
    this.#input = Buffer.concat([this.#input, chunk]);
    while (this.#input.length >= 4) {
      const length = this.#input.readInt32BE(0);
      // Four bytes of text are not a valid frame length.
      const end = length > 1 << 24 ? this.#input.length : 4 + length;
      if (this.#input.length < end) return;
      const frame = this.#input.subarray(0, end);
      this.#input = this.#input.subarray(end);
      this.#onFrame(frame);
    }
  }
}

function withoutConfig(frame: Buffer): Buffer {
  const at = frame.indexOf(CONFIG_PATH);
  if (at < 0) return frame;
  const other = Buffer.from(frame);
  other.write('/zookeeper/absent', at);
  return other;
}
