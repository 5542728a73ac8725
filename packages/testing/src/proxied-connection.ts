import { connect, type Socket } from 'node:net';
import { Flow, resetSocket } from './flow.ts';
import { formatTarget, type TargetAddress } from './target-address.ts';

export type Direction = 'toServer' | 'toClient';

export interface CutOptions {
  /**
   * How both ends see it: `'reset'`, the default, as a broken connection (RST); `'end'` as one that was closed (FIN). An
   * end in Node.js that finds the last bytes and the reset together takes it for an end.
   */
  readonly how?: 'reset' | 'end';
}

export interface CutRule extends CutOptions {
  readonly direction: Direction;
  /**
   * The connection is cut as soon as so many bytes of that direction have been forwarded, counted from now; 0 cuts it
   * when the next byte arrives, which is not forwarded.
   */
  readonly bytes: number;
}

/** What a proxy does to each of its connections. */
export interface FlowRules {
  readonly delayMs: Readonly<Record<Direction, number>>;
  readonly isFrozen: Readonly<Record<Direction, boolean>>;
  onPassed(direction: Direction, bytes: number): void;
}

/**
 * One connection through a proxy.
 *
 *     const connection = await proxy.nextConnection();
 *     await connection.cut();
 */
export class ProxiedConnection {
  /** `host:port` of the client. */
  readonly client: string;
  /** `host:port` that it leads to. */
  readonly target: string;
  /** Resolves once both ends are closed, with the reason in words: "cut", "closed by the client". */
  readonly closed: Promise<string>;
  readonly #clientSocket: Socket;
  readonly #serverSocket: Socket;
  readonly #flows: Readonly<Record<Direction, Flow>>;
  /** Why it ended: the first reason counts. */
  #reason: string | null = null;

  constructor(clientSocket: Socket, target: TargetAddress, rules: FlowRules) {
    this.client = formatTarget({ host: clientSocket.remoteAddress ?? '?', port: clientSocket.remotePort ?? 0 });
    this.target = formatTarget(target);
    this.#clientSocket = clientSocket;
    this.#serverSocket = connect({ host: target.host, port: target.port, allowHalfOpen: true, noDelay: true });
    this.#watch(clientSocket, 'the client');
    this.#watch(this.#serverSocket, 'the server');
    const flow = (direction: Direction, source: Socket, sink: Socket): Flow =>
      new Flow(source, sink, {
        delayMs: rules.delayMs[direction],
        isFrozen: rules.isFrozen[direction],
        onPassed: (bytes) => rules.onPassed(direction, bytes),
      });
    this.#flows = {
      toServer: flow('toServer', clientSocket, this.#serverSocket),
      toClient: flow('toClient', this.#serverSocket, clientSocket),
    };
    const closes = [clientSocket, this.#serverSocket].map((s) => new Promise((resolve) => s.once('close', resolve)));
    this.closed = Promise.all(closes).then(() => {
      for (const each of this.#flowsOf()) each.stop();
      return this.#reason ?? 'closed';
    });
  }

  /** Bytes passed on so far. */
  get bytesToServer(): number {
    return this.#flows.toServer.passedBytes;
  }

  get bytesToClient(): number {
    return this.#flows.toClient.passedBytes;
  }

  /** As `TcpProxy.delay`, for this connection alone. */
  delay(ms: number, direction?: Direction): void {
    for (const flow of this.#flowsOf(direction)) flow.delay(ms);
  }

  /** As `TcpProxy.freeze`, for this connection alone. */
  freeze(direction?: Direction): void {
    for (const flow of this.#flowsOf(direction)) flow.freeze();
  }

  /** As `TcpProxy.thaw`, for this connection alone. */
  thaw(direction?: Direction): void {
    for (const flow of this.#flowsOf(direction)) flow.thaw();
  }

  /**
   * Cuts this connection now; what has not been passed on is lost.
   *
   * @returns once both ends are closed on this side
   */
  async cut(options: CutOptions = {}): Promise<void> {
    this.#reason ??= 'cut';
    for (const flow of this.#flowsOf()) flow.stop();
    for (const socket of [this.#clientSocket, this.#serverSocket]) {
      if (options.how === 'end') endSocket(socket);
      else resetSocket(socket);
    }
    await this.closed;
  }

  /**
   * Cuts this connection in the middle of what follows.
   *
   *     const cut = connection.cutAfter({ direction: 'toClient', bytes: 0 });
   *     await client.create('/a').catch(() => {});    // created, but the reply is lost
   *     await cut;
   *
   * @returns once it is cut
   * @throws Error when it closes before, or has closed already
   */
  cutAfter(rule: CutRule): Promise<void> {
    checkCutRule(rule);
    const { direction, bytes } = rule;
    const flow = this.#flows[direction];
    const startBytes = flow.passedBytes;
    const cut = new Promise<void>((resolve, reject) => {
      flow.stopAfter(
        bytes,
        () => {
          for (const each of this.#flowsOf()) each.stop();
        },
        () => resolve(this.cut(rule)),
      );
      void this.closed.then((reason) => {
        const passed = flow.passedBytes - startBytes;
        reject(new Error(`the connection ended (${reason}) after ${passed} of ${bytes} bytes ${direction}`));
      });
    });
    // A caller that does not wait for the cut need not learn that it did not come.
    cut.catch(() => {});
    return cut;
  }

  #flowsOf(direction?: Direction): readonly Flow[] {
    return direction === undefined ? [this.#flows.toServer, this.#flows.toClient] : [this.#flows[direction]];
  }

  #watch(socket: Socket, name: string): void {
    socket.once('end', () => {
      this.#reason ??= `closed by ${name}`;
    });
    socket.on('error', (error: NodeJS.ErrnoException) => {
      const isConnecting = socket === this.#serverSocket && error.syscall === 'connect';
      this.#reason ??= isConnecting
        ? `no connection to ${this.target}: ${error.code}`
        : `broken by ${name}: ${error.code}`;
    });
  }
}

/** @throws RangeError when no connection can be cut there */
export function checkCutRule({ bytes }: CutRule): void {
  if (!Number.isInteger(bytes) || bytes < 0) throw new RangeError(`a cut is after 0 or more whole bytes, not ${bytes}`);
}

/** Closes a connection so that the other side sees its end, whether it reads or not. */
function endSocket(socket: Socket): void {
  if (socket.connecting || socket.writableLength > 0) socket.destroy();
  else socket.destroySoon();
}
