/** Snapshot compression (`snapshot.compression.method`); also the suffix of such a file. */
export type Compression = 'gz' | 'snappy';

/** Compresses and decompresses snapshots, piece by piece. */
export interface SnapshotCodec {
  compress(method: Compression): ByteTransform;
  decompress(method: Compression): ByteTransform;
}

/** One stream through a codec. */
export interface ByteTransform {
  /**
   * Takes the next bytes of the stream, which belong to the transform until `done`. Called again only after `done`.
   *
   * @param isLast no more bytes follow
   * @param done called in a later event with the output so far, which may be empty and belongs to the receiver. After
   *   an error, such as input that is not of this method, the transform is unusable
   */
  push(bytes: Uint8Array, isLast: boolean, done: (error: Error | null, bytes: Uint8Array) => void): void;
  /** Aborts the stream; `done` is not called afterwards. Does nothing after the last bytes. */
  close(): void;
}
