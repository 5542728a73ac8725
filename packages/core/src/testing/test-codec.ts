import type { ByteTransform, Compression, Disk, SnapshotCodec } from '../base/ports.ts';

const HEADS: Readonly<Record<Compression, readonly number[]>> = {
  gz: [0x1f, 0x8b],
  snappy: [0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0x00],
};
const END = [0x65, 0x6e, 0x64];
const MASK = 0x55;
/** Bytes that a push holds back. */
const KEPT_BYTES = 100;
const NOTHING: Uint8Array = new Uint8Array(0);

/**
 * A codec that does not compress: a file begins like one of its method, differs from the snapshot, is returned in
 * pieces of other lengths, and is recognized when truncated. Its events are delivered with those of the disk.
 */
export class TestCodec implements SnapshotCodec {
  readonly #disk: Disk;

  constructor(disk: Disk) {
    this.#disk = disk;
  }

  compress(method: Compression): ByteTransform {
    let kept: Uint8Array = Uint8Array.from(HEADS[method]);
    return this.#transform((bytes, isLast) => {
      const out = join(kept, masked(bytes), Uint8Array.from(isLast ? END : []));
      kept = isLast ? NOTHING : out.slice(-KEPT_BYTES);
      return isLast ? out : out.subarray(0, out.length - kept.length);
    });
  }

  decompress(method: Compression): ByteTransform {
    let kept = NOTHING;
    let headBytes = HEADS[method].length;
    return this.#transform((bytes, isLast) => {
      const packed = join(kept, bytes);
      const start = Math.min(headBytes, packed.length);
      headBytes -= start;
      const end = Math.max(start, packed.length - END.length);
      kept = packed.slice(end);
      if (isLast && kept.join() !== END.join()) throw new Error('the file is cut short');
      return masked(packed.subarray(start, end));
    });
  }

  #transform(take: (bytes: Uint8Array, isLast: boolean) => Uint8Array): ByteTransform {
    let isClosed = false;
    return {
      push: (bytes, isLast, done) => {
        // Any effect, just for its completion.
        this.#disk.makeDirectory('/codec', () => {
          if (isClosed) return;
          let out = NOTHING;
          let failure: Error | null = null;
          try {
            out = take(bytes, isLast);
          } catch (error) {
            failure = error as Error;
          }
          done(failure, out);
        });
      },
      close: () => {
        isClosed = true;
      },
    };
  }
}

function masked(bytes: Uint8Array): Uint8Array {
  return bytes.map((byte) => byte ^ MASK);
}

function join(...parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
