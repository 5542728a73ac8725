import { createGunzip, createGzip, type Gunzip, type Gzip } from 'node:zlib';
import type { ByteTransform, Compression, SnapshotCodec } from '@meerkat/core';
import { SnappyPacker, SnappyUnpacker } from '../archive/snappy.ts';
import type { Turn } from './turn.ts';

type Done = (error: Error | null, bytes: Uint8Array) => void;

/** gzip runs in the thread pool, snappy on the event loop: about 2 ms for a slice of a snapshot. */
export class NodeSnapshotCodec implements SnapshotCodec {
  readonly #turn: Turn;

  constructor(turn: Turn) {
    this.#turn = turn;
  }

  compress(method: Compression): ByteTransform {
    if (method === 'gz') return new ZlibTransform(createGzip({ chunkSize: CHUNK_BYTES }), this.#turn);
    const packer = new SnappyPacker();
    return new LoopTransform((bytes, isLast) => packer.take(bytes, isLast), this.#turn);
  }

  decompress(method: Compression): ByteTransform {
    if (method === 'gz') return new ZlibTransform(createGunzip({ chunkSize: CHUNK_BYTES }), this.#turn);
    const unpacker = new SnappyUnpacker();
    const take = (bytes: Uint8Array, isLast: boolean): Uint8Array => {
      const blocks = unpacker.take(bytes);
      if (isLast) unpacker.end();
      return Buffer.concat(blocks);
    };
    return new LoopTransform(take, this.#turn);
  }
}

/** Memory that zlib asks for at a time. */
const CHUNK_BYTES = 64 * 1024;

class ZlibTransform implements ByteTransform {
  readonly #stream: Gzip | Gunzip;
  readonly #turn: Turn;
  #pieces: Uint8Array[] = [];
  /** Of the bytes that the stream has; null when it has none. */
  #done: Done | null = null;
  /** A file of gzip says where it ends. */
  #isEnded = false;
  #isClosed = false;

  constructor(stream: Gzip | Gunzip, turn: Turn) {
    this.#stream = stream;
    this.#turn = turn;
    stream.on('data', (piece: Uint8Array) => this.#pieces.push(piece));
    stream.on('error', (error) => this.#finish(error));
    stream.on('end', () => {
      this.#isEnded = true;
      this.#finish(null);
    });
  }

  push(bytes: Uint8Array, isLast: boolean, done: Done): void {
    this.#done = done;
    if (this.#isEnded) {
      setImmediate(() => this.#finish(new Error('bytes follow behind its end')));
    } else if (isLast) {
      this.#stream.end(bytes);
    } else {
      this.#stream.write(bytes, (error) => {
        if (error == null) this.#finish(null);
      });
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#stream.destroy();
  }

  #finish(error: Error | null): void {
    const done = this.#done;
    if (done === null) return;
    this.#done = null;
    const bytes = Buffer.concat(this.#pieces);
    this.#pieces = [];
    this.#turn.run(() => {
      if (!this.#isClosed) done(error, bytes);
    });
  }
}

/** Answers with a later event, as its users expect. */
class LoopTransform implements ByteTransform {
  readonly #take: (bytes: Uint8Array, isLast: boolean) => Uint8Array;
  readonly #turn: Turn;
  #isClosed = false;

  /** @param take throws when the bytes cannot be what they are taken for */
  constructor(take: (bytes: Uint8Array, isLast: boolean) => Uint8Array, turn: Turn) {
    this.#take = take;
    this.#turn = turn;
  }

  push(bytes: Uint8Array, isLast: boolean, done: Done): void {
    setImmediate(() => {
      if (this.#isClosed) return;
      let taken: Uint8Array = NOTHING;
      let failure: Error | null = null;
      try {
        taken = this.#take(bytes, isLast);
      } catch (error) {
        failure = error as Error;
      }
      this.#turn.run(() => {
        if (!this.#isClosed) done(failure, taken);
      });
    });
  }

  close(): void {
    this.#isClosed = true;
  }
}

const NOTHING = new Uint8Array(0);
