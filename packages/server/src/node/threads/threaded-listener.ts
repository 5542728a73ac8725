import type { ByteStream, StreamEvents } from '@meerkat/core';
import { sendable, type TlsSettings } from '../../tls/tls-settings.ts';
import type { Listener, TlsListenEvents } from '../network.ts';
import type { ThreadNote, ThreadPort, ToServer, ToThread } from './messages.ts';

/** What becomes of the connections of a port. */
export interface ThreadedEvents {
  onStream(stream: ByteStream): StreamEvents;
  /** Null without TLS. */
  readonly tls: TlsListenEvents | null;
}

/** The threads that listen on it. */
export interface ThreadedPlace {
  /** All of them. */
  send(message: ToThread): void;
  /** Another turn is wanted. */
  mark(): void;
  handshakes(): number;
}

/** A thread that was told to listen. */
interface Starting {
  /** Which it was told. */
  readonly tls: ThreadPort['tls'];
  resolve(): void;
  reject(error: Error): void;
}

/** A port that all I/O threads listen on. */
export class ThreadedListener implements Listener {
  host = '';
  port = 0;
  isClosed = false;
  readonly #events: ThreadedEvents;
  readonly #place: ThreadedPlace;
  readonly #streams = new Set<ByteStream>();
  /** By the number of the thread. */
  readonly #starting = new Map<number, Starting>();
  #options: ThreadPort;
  #onEmpty: (() => void) | null = null;

  constructor(options: ThreadPort, events: ThreadedEvents, place: ThreadedPlace) {
    this.#options = options;
    this.#events = events;
    this.#place = place;
  }

  get handshakeCount(): number {
    return this.#place.handshakes();
  }

  /** @returns once that thread listens, or the one in its place when it dies before */
  listenIn(thread: number, send: (message: ToThread) => void): Promise<void> {
    return new Promise((resolve, reject) => {
      const former = this.#starting.get(thread);
      this.#starting.set(thread, {
        tls: this.#options.tls,
        resolve() {
          former?.resolve();
          resolve();
        },
        reject(error) {
          former?.reject(error);
          reject(error);
        },
      });
      send({ kind: 'listen', port: this.#options });
    });
  }

  /** Some thread has listened. */
  get hasListened(): boolean {
    return this.host !== '';
  }

  /** Rejects the pending start of that thread. */
  fail(thread: number, fault: Error): void {
    const starting = this.#starting.get(thread);
    this.#starting.delete(thread);
    starting?.reject(fault);
  }

  onMessage(thread: number, message: NonNullable<ToServer>): void {
    const starting = this.#starting.get(thread);
    this.#starting.delete(thread);
    if (message.kind === 'failed') {
      const { code, message: text } = message;
      starting?.reject(Object.assign(new Error(text), { code }));
      return;
    }
    ({ host: this.host, port: this.port } = message.at);
    // Threads that come later take the same port.
    this.#options = { ...this.#options, port: this.port };
    if (this.isClosed) this.#place.send({ kind: 'close', port: this.#options.number });
    // What was renewed while it began to listen may have reached it too early.
    const { tls, number } = this.#options;
    if (tls !== null && starting?.tls !== tls)
      this.#place.send({ kind: 'renew', port: number, settings: tls.settings });
    starting?.resolve();
  }

  onStream(stream: ByteStream): StreamEvents {
    this.#streams.add(stream);
    return this.#events.onStream(stream);
  }

  onGone(stream: ByteStream): void {
    if (this.#streams.delete(stream) && this.#streams.size === 0) this.#onEmpty?.();
  }

  onNote(note: Extract<ThreadNote, { readonly port: number }>): void {
    const remote = { ...note.remote, ip: Uint8Array.from(note.remote.ip) };
    if (note.kind === 'handshakes-exceeded') this.#events.tls?.onHandshakesExceeded(remote, note.reason);
    else this.#events.tls?.onHandshakeFailed(remote, note.reason, note.isAuthentication);
  }

  renew(renewed: TlsSettings): void {
    const { tls, number } = this.#options;
    if (tls === null) return;
    const settings = sendable(renewed);
    this.#options = { ...this.#options, tls: { ...tls, settings } };
    this.#place.send({ kind: 'renew', port: number, settings });
  }

  close(): void {
    this.isClosed = true;
    this.#send('close');
  }

  async drain(timeoutMs: number): Promise<void> {
    if (this.#streams.size > 0) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, timeoutMs);
        this.#onEmpty = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    this.destroyAll();
  }

  destroyAll(): void {
    this.#send('destroyAll');
    for (const stream of this.#streams) stream.destroy();
    this.#place.mark();
  }

  freeze(): void {
    this.#send('freeze');
  }

  thaw(): void {
    this.#send('thaw');
  }

  #send(kind: 'close' | 'destroyAll' | 'freeze' | 'thaw'): void {
    this.#place.send({ kind, port: this.#options.number });
  }
}
