import { connect, createServer, type Server, type Socket } from 'node:net';

/*
 * The differences of a ZooKeeper 3.5 (client-visible, from its UnimplementedRequestProcessor and Watcher events): later
 * operations are answered with UNIMPLEMENTED, then the connection is closed; events carry no zxid.
 */

/** A proxy that makes a newer server behave like one of 3.5. */
export class OldServer implements AsyncDisposable {
  readonly #server: Server;
  readonly #sockets: Set<Socket> = new Set();
  /** Operations that were refused, oldest first. */
  readonly refused: number[] = [];
  /** False: every connection is closed at once. */
  isOpen = true;
  /** Paths of the watches that clients have rearmed on new connections. */
  readonly rearmed: string[] = [];

  /** @param port of the newer server, on 127.0.0.1 */
  static async start(port: number): Promise<OldServer> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return new OldServer(server, port);
  }

  private constructor(server: Server, port: number) {
    this.#server = server;
    server.on('connection', (client) => this.#onConnection(client, connect(port, '127.0.0.1')));
  }

  get connectString(): string {
    const address = this.#server.address();
    if (address === null || typeof address === 'string') throw new Error('the server does not listen');
    return `127.0.0.1:${address.port}`;
  }

  /** Breaks all connections. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #onConnection(client: Socket, server: Socket): void {
    for (const [socket, other] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        this.#sockets.delete(socket);
        other.destroy();
      });
    }
    if (!this.isOpen) client.destroy();
    let isFirst = true;
    onFrames(client, (frame) => {
      const op = isFirst ? 0 : frame.readInt32BE(8);
      if (op === SET_WATCHES) this.rearmed.push(...readPaths(frame));
      isFirst = false;
      if (LATER_OPS.has(op)) {
        this.refused.push(op);
        client.end(refusal(frame.readInt32BE(4)));
      } else if (!client.writableEnded) server.write(frame);
    });
    onFrames(server, (frame) => {
      if (frame.readInt32BE(4) === NOTIFICATION) frame.writeBigInt64BE(-1n, 8);
      if (!client.writableEnded) client.write(frame);
    });
  }
}

/** multiRead, getEphemerals, getAllChildrenNumber, setWatches2, addWatch, whoAmI. */
const LATER_OPS: ReadonlySet<number> = new Set([22, 103, 104, 105, 106, 107]);
const SET_WATCHES = 101;
const NOTIFICATION = -1;
const UNIMPLEMENTED = -6;

/** For a setWatches: a header of 12 bytes with the length, a zxid, then three lists of paths. */
function readPaths(frame: Buffer): string[] {
  const paths: string[] = [];
  let at = 20;
  for (let list = 0; list < 3; list++) {
    const count = frame.readInt32BE(at);
    at += 4;
    for (let i = 0; i < count; i++) {
      const end = at + 4 + frame.readInt32BE(at);
      paths.push(frame.toString('utf8', at + 4, end));
      at = end;
    }
  }
  return paths;
}

/** A frame with only a ReplyHeader. */
function refusal(xid: number): Buffer {
  const frame = Buffer.alloc(20);
  frame.writeInt32BE(16, 0);
  frame.writeInt32BE(xid, 4);
  frame.writeInt32BE(UNIMPLEMENTED, 16);
  return frame;
}

/** Calls back with each frame, including its length. */
function onFrames(socket: Socket, onFrame: (frame: Buffer) => void): void {
  let bytes = Buffer.alloc(0);
  socket.on('data', (chunk) => {
    bytes = Buffer.concat([bytes, chunk]);
    while (bytes.length >= 4 && bytes.length >= 4 + bytes.readInt32BE(0)) {
      const end = 4 + bytes.readInt32BE(0);
      const frame = Buffer.from(bytes.subarray(0, end));
      bytes = bytes.subarray(end);
      onFrame(frame);
    }
  });
}
