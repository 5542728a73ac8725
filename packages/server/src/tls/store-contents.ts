import type { KeyObject, X509Certificate } from 'node:crypto';

/** A private key and the certificates that were stored with it, in the order of the file. */
export interface StoredKey {
  readonly key: KeyObject;
  readonly certificates: readonly X509Certificate[];
}

/** What a file of keys and certificates holds. */
export interface StoreContents {
  readonly format: 'PEM' | 'PKCS12' | 'JKS';
  readonly keys: readonly StoredKey[];
  /** Certificates without a key. */
  readonly trusted: readonly X509Certificate[];
}

/** A file that cannot be used. Neither text holds a secret. */
export class StoreFault extends Error {
  override readonly name = 'StoreFault';
  readonly found: string;
  readonly expected: string;

  constructor(found: string, expected: string, cause?: unknown) {
    super(`found ${found}, expected ${expected}`, cause === undefined ? undefined : { cause });
    this.found = found;
    this.expected = expected;
  }
}
