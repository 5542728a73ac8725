import type { EncryptionKey } from './fields.ts';

/** A ticket for one service, and its session key. Do not print this object: it shows the key. */
export interface ServiceTicket {
  /** The client, with its realm. */
  readonly client: string;
  /** The service, with its realm. */
  readonly service: string;
  /** As issued by the key distribution center: only the service can read it. */
  readonly ticket: Uint8Array;
  readonly sessionKey: EncryptionKey;
  /** Milliseconds since 1970. */
  readonly startsMs: number;
  readonly endsMs: number;
}
