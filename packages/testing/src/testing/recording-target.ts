import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';

/** One end of a connection, with everything that came on it. */
export class End {
  readonly socket: Socket;
  readonly closed: Promise<void>;
  received = '';
  /** How the other side ended it. */
  ending: 'open' | 'end' | 'reset' = 'open';
  #wake: (() => void)[] = [];

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on('data', (chunk) => {
      this.received += chunk.toString('latin1');
      this.#record();
    });
    socket.on('end', () => {
      this.ending = 'end';
      this.#record();
    });
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNRESET') this.ending = 'reset';
    });
    this.closed = new Promise((resolve) => socket.once('close', () => resolve()));
    void this.closed.then(() => this.#record());
  }

  async until(condition: (end: this) => boolean): Promise<void> {
    while (!condition(this)) await new Promise<void>((resolve) => this.#wake.push(resolve));
  }

  #record(): void {
    for (const wake of this.#wake.splice(0)) wake();
  }
}

/** A server that only records its input and its connections. */
export class Target {
  readonly ends: End[] = [];
  port = 0;
  readonly #server: Server;
  #wake: (() => void)[] = [];

  static async start(options: { allowHalfOpen?: boolean } = {}): Promise<Target> {
    const target = new Target(options.allowHalfOpen ?? false);
    target.#server.listen(0, '127.0.0.1');
    await once(target.#server, 'listening');
    target.port = (target.#server.address() as AddressInfo).port;
    return target;
  }

  private constructor(allowHalfOpen: boolean) {
    this.#server = createServer({ allowHalfOpen, noDelay: true }, (socket) => {
      this.ends.push(new End(socket));
      for (const wake of this.#wake.splice(0)) wake();
    });
  }

  async end(index: number): Promise<End> {
    while (this.ends.length <= index) await new Promise<void>((resolve) => this.#wake.push(resolve));
    return this.ends[index] as End;
  }

  stop(): void {
    this.#server.close();
    for (const { socket } of this.ends) socket.destroy();
  }
}
