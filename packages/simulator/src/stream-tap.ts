/** Hears of every stream. */
export interface StreamTap {
  /** `dialler` has been accepted at `host:port`. */
  onOpen(connection: number, dialler: string, host: string, port: number): void;
  /** Bytes were written by `from`, or its peer's process has taken them. They may be used again afterwards. */
  onBytes(connection: number, from: string, stage: 'sent' | 'received', bytes: Uint8Array): void;
  /** Nothing arrives any more, in either direction. */
  onClose(connection: number): void;
}

/** Decides how much of what is written sets out; what does not is lost, and its writer hears nothing of it. */
export interface StreamValve {
  /** Asked after the tap has been told that `from` has written so many bytes. @returns how many of them set out */
  admit(connection: number, from: string, size: number): number;
}
