import type { EncryptionKey } from './fields.ts';

/** A ticket for one service, and the key that comes with it. What prints this object shows the key: do not. */
export interface ServiceTicket {
  /** Whose it is, with its realm. */
  readonly client: string;
  /** For whom it is, with its realm. */
  readonly service: string;
  /** As the key distribution center gave it: only the service can read it. */
  readonly ticket: Uint8Array;
  readonly sessionKey: EncryptionKey;
  /** Milliseconds since 1970. */
  readonly startsMs: number;
  readonly endsMs: number;
}
