import { type NewAuthenticator, writeAuthenticator } from './ap-messages.ts';
import { ENCRYPTION_TYPES, type EncryptionType } from './encryption.ts';
import type { EncryptedData, EncryptionKey } from './fields.ts';
import { KerberosError } from './kerberos-error.ts';

/** @throws KerberosError for a key that is not an AES key */
export function typeOf({ encryptionType, bytes }: EncryptionKey, whose: string): EncryptionType {
  const type = ENCRYPTION_TYPES.get(encryptionType);
  if (type !== undefined && type.keyBytes === bytes.length) return type;
  throw new KerberosError(
    `the key of ${whose} is of encryption type ${encryptionType}; AES is demanded (17, 18, 19 or 20): allow it in krb5.conf and at the key distribution center`,
  );
}

/** An authenticator, sealed with the session key of a ticket. */
export function sealAuthenticator(sessionKey: EncryptionKey, usage: number, made: NewAuthenticator): EncryptedData {
  const type = typeOf(sessionKey, `the ticket of ${made.client}`);
  const cipher = type.encrypt(sessionKey.bytes, usage, writeAuthenticator(made));
  return { encryptionType: sessionKey.encryptionType, version: null, cipher };
}

/**
 * The clock of authenticators, in microseconds since 1970: its readings are unique, so that none is taken for a replay.
 */
export class MicroClock {
  readonly #nowMs: () => number;
  #last = 0;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  next(): number {
    this.#last = Math.max(this.#last + 1, Math.floor(this.#nowMs() * 1000));
    return this.#last;
  }
}
