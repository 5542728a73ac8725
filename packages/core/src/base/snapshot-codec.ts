/** How snapshots are compressed (`snapshot.compression.method`); also the suffix of such a file. */
export type Compression = 'gz' | 'snappy';

/** Compresses snapshots and decompresses them, piece by piece. */
export interface SnapshotCodec {
  compress(method: Compression): ByteTransform;
  decompress(method: Compression): ByteTransform;
}

/** One stream of bytes on its way through a codec. */
export interface ByteTransform {
  /**
   * Takes the next bytes of the stream, which belong to the transform until `done`. Asked for again only then.
   *
   * @param isLast nothing follows
   * @param done told with a later event: what has come out so far, which may be nothing and is the receiver's. After an
   *   error, such as bytes that are none of this method, the transform is of no use
   */
  push(bytes: Uint8Array, isLast: boolean, done: (error: Error | null, bytes: Uint8Array) => void): void;
  /** Gives the stream up; `done` is not told any more. Nothing happens after the last bytes. */
  close(): void;
}
