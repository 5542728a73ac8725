/** A connection inside this process, between a client of a past state and its service. */
import type { ByteStream, ServerCore, StreamEvents } from '@meerkat/core';
import type { Turn } from '../node/turn.ts';

/** The end of a client, as the transports of `@meerkat/client` have it. */
export interface PastStream {
  write(bytes: Uint8Array): boolean;
  destroy(): void;
}

export interface PastStreamEvents {
  onOpen(): void;
  onBytes(chunk: Uint8Array): void;
  onClosed(failure: null, detail: string): void;
}

/** Both ends of a stream: this is the client's. */
export class StreamPair implements PastStream {
  readonly #turn: Pick<Turn, 'run'>;
  readonly #client: PastStreamEvents;
  #server: StreamEvents | null = null;
  /** The server reads nothing at the moment. */
  #isPaused = false;
  /** What it has not read yet, oldest first. */
  readonly #held: Uint8Array[] = [];
  #isOver = false;

  constructor(turn: Pick<Turn, 'run'>, core: Pick<ServerCore, 'onStreamOpened'>, client: PastStreamEvents) {
    this.#turn = turn;
    this.#client = client;
    setImmediate(() => {
      turn.run(() => {
        this.#server = core.onStreamOpened(this.#serverEnd());
      });
      if (!this.#isOver) client.onOpen();
    });
  }

  write(bytes: Uint8Array): boolean {
    const copy = Uint8Array.from(bytes);
    this.#turn.run(() => this.#deliver(copy));
    return true;
  }

  destroy(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#turn.run(() => this.#server?.onClosed('closed by peer'));
  }

  #serverEnd(): ByteStream {
    return {
      remote: { ip: Uint8Array.of(127, 0, 0, 1), host: '127.0.0.1', port: 1 },
      queuedBytes: 0,
      write: (bytes) => {
        const copy = Uint8Array.from(bytes);
        setImmediate(() => (this.#isOver ? undefined : this.#client.onBytes(copy)));
      },
      end: () => this.#close(),
      destroy: () => this.#close(),
      pause: () => {
        this.#isPaused = true;
      },
      resume: () => {
        this.#isPaused = false;
        setImmediate(() => this.#deliverHeld());
      },
    };
  }

  /** The server may pause again with each of them. */
  #deliverHeld(): void {
    while (!this.#isPaused && !this.#isOver && this.#held.length > 0) {
      const bytes = this.#held.shift()!;
      this.#turn.run(() => this.#server?.onBytes(bytes));
    }
  }

  /** What is written after a pause stays behind what was written during it. */
  #deliver(bytes: Uint8Array): void {
    if (this.#isOver) return;
    if (this.#isPaused || this.#held.length > 0) this.#held.push(bytes);
    else this.#server?.onBytes(bytes);
  }

  #close(): void {
    if (this.#isOver) return;
    setImmediate(() => {
      if (this.#isOver) return;
      this.#isOver = true;
      this.#client.onClosed(null, 'closed by the server');
      this.#turn.run(() => this.#server?.onClosed('closed'));
    });
  }
}
