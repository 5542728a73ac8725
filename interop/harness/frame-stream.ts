import { connect, type Socket } from 'node:net';

/** Length-prefixed frames to and from a server. Received frames are queued until they are read. */
export class FrameStream {
  readonly #socket: Socket;
  #input: Buffer = Buffer.alloc(0);
  readonly #frames: Buffer[] = [];
  readonly #waiting: ((frame: Buffer | null) => void)[] = [];
  #isClosed = false;

  static open(port: number): Promise<FrameStream> {
    return new Promise((resolve, reject) => {
      const socket = connect({ port, host: '127.0.0.1', noDelay: true });
      socket.once('error', reject);
      socket.once('connect', () => {
        socket.removeListener('error', reject);
        resolve(new FrameStream(socket));
      });
    });
  }

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('data', (chunk) => this.#onData(chunk));
    // A reset is followed by `close`.
    socket.on('error', () => undefined);
    socket.on('close', () => this.#onClosed());
  }

  /** True once the peer has closed; earlier frames can still be read. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Bytes not yet accepted by the kernel. */
  get unsentBytes(): number {
    return this.#socket.writableLength;
  }

  send(frame: Uint8Array): void {
    const bytes = Buffer.alloc(4 + frame.length);
    bytes.writeInt32BE(frame.length);
    bytes.set(frame, 4);
    this.#socket.write(bytes);
  }

  /** Sends raw bytes, for invalid frames. */
  sendRaw(bytes: Uint8Array): void {
    this.#socket.write(bytes);
  }

  /** The next frame; null when the stream was closed before one arrived. */
  next(): Promise<Buffer | null> {
    const frame = this.#frames.shift();
    if (frame !== undefined) return Promise.resolve(frame);
    if (this.#isClosed) return Promise.resolve(null);
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /**
   * Half-closes the connection and waits until the server has closed it too, so that the server knows that it is gone.
   * Discards received frames.
   */
  async end(): Promise<void> {
    this.#socket.end();
    while ((await this.next()) !== null);
  }

  /** Closes at once; the server notices later. */
  destroy(): void {
    this.#socket.destroy();
  }

  #onData(chunk: Buffer): void {
    this.#input = this.#input.length === 0 ? chunk : Buffer.concat([this.#input, chunk]);
    while (this.#input.length >= 4) {
      const length = this.#input.readInt32BE(0);
      if (this.#input.length < 4 + length) return;
      const frame = Buffer.from(this.#input.subarray(4, 4 + length));
      this.#input = this.#input.subarray(4 + length);
      const waiting = this.#waiting.shift();
      if (waiting === undefined) this.#frames.push(frame);
      else waiting(frame);
    }
  }

  #onClosed(): void {
    this.#isClosed = true;
    for (const waiting of this.#waiting.splice(0)) waiting(null);
  }
}
