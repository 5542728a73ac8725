import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** The ops of 3.4 (`ZooDefs.OpCode` and `Request.isValid` of that version). */
const KNOWN_OPS: ReadonlySet<number> = new Set([1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 14, 100, 101, 102, -11]);
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
      server.on('data', (chunk) => client.write(chunk));
      server.on('end', () => client.end());
      new Requests(client, server, refusedOps);
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

/** Splits the client's bytes into frames. */
class Requests {
  readonly #client: Socket;
  readonly #server: Socket;
  readonly #refusedOps: number[];
  #input: Buffer = Buffer.alloc(0);
  #isFirst = true;
  /** The connection is closed: later bytes are ignored. */
  #isOver = false;

  constructor(client: Socket, server: Socket, refusedOps: number[]) {
    this.#client = client;
    this.#server = server;
    this.#refusedOps = refusedOps;
    client.on('data', (chunk) => {
      this.#input = Buffer.concat([this.#input, chunk]);
      this.#passFrames();
    });
  }

  #passFrames(): void {
    while (this.#input.length >= 4 && !this.#isOver) {
      const length = this.#input.readInt32BE(0);
      // A four-letter word: four bytes that are not a valid frame length.
      const end = length > 1 << 24 ? this.#input.length : 4 + length;
      if (this.#input.length < end) return;
      const frame = this.#input.subarray(0, end);
      this.#input = this.#input.subarray(end);
      // The first frame is the connect request, without a header.
      if (this.#isFirst || KNOWN_OPS.has(frame.readInt32BE(8))) this.#server.write(withoutConfig(frame));
      else {
        this.#refuse(frame);
        return;
      }
      this.#isFirst = false;
    }
  }

  #refuse(frame: Buffer): void {
    this.#isOver = true;
    this.#refusedOps.push(frame.readInt32BE(8));
    const reply = Buffer.alloc(20);
    reply.writeInt32BE(16, 0);
    reply.writeInt32BE(frame.readInt32BE(4), 4);
    reply.writeBigInt64BE(-1n, 8);
    reply.writeInt32BE(-6, 16);
    this.#client.end(reply);
  }
}

function withoutConfig(frame: Buffer): Buffer {
  const at = frame.indexOf(CONFIG_PATH);
  if (at < 0) return frame;
  const other = Buffer.from(frame);
  other.write('/zookeeper/absent', at);
  return other;
}
