/** Observes every stream. */
export interface StreamTap {
  /** `dialler` has been accepted at `host:port`. */
  onOpen(connection: number, dialler: string, host: string, port: number): void;
  /** Bytes were written by `from`, or its peer's process has taken them. They may be used again afterwards. */
  onBytes(connection: number, from: string, stage: 'sent' | 'received', bytes: Uint8Array): void;
  /** Nothing arrives after this, in either direction. */
  onClose(connection: number): void;
}

/** Decides how much of what is written is sent; the rest is lost without the writer's knowledge. */
export interface StreamValve {
  /** Called after the tap has seen that `from` wrote `size` bytes. @returns how many of them are sent */
  admit(connection: number, from: string, size: number): number;
}
