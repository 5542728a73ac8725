/**
 * A keytab, format 0x0502 of MIT Kerberos; all numbers are big-endian:
 *
 *     keytab := 05 02 *(i4 size, entry)            a negative size is a hole of so many bytes
 *     entry  := u2 components, realm, *component, u4 name type, u4 time, u1 version, u2 key type, key, [u4 version]
 *     realm, component, key := u2 length, bytes
 */
import { ENCRYPTION_TYPES } from './encryption.ts';

export interface KeytabKey {
  /** Components and realm: `zookeeper/host@REALM`. */
  readonly principal: string;
  readonly version: number;
  readonly encryptionType: number;
  readonly bytes: Uint8Array;
}

/** Keys by principal. Printing this object does not show them. */
export class Keytab {
  readonly #keys: readonly KeytabKey[];

  constructor(keys: readonly KeytabKey[]) {
    this.#keys = keys;
  }

  /** Principals without duplicates. */
  get principals(): readonly string[] {
    return [...new Set(this.#keys.map(({ principal }) => principal))];
  }

  /**
   * The keys of a principal that may match, newest first.
   *
   * @param version as given by a ticket; null: unknown, so any may match
   */
  find(principal: string, encryptionType: number, version: number | null): readonly Uint8Array[] {
    return this.#keys
      .filter((key) => key.principal === principal && key.encryptionType === encryptionType && hasRightLength(key))
      .filter(
        (key) => version === null || key.version === version || (key.version < 256 && key.version === (version & 0xff)),
      )
      .sort((a, b) => b.version - a.version)
      .map(({ bytes }) => bytes);
  }

  /** `aes256 of version 3`, for people. */
  describe(principal: string): string {
    const keys = this.#keys.filter((key) => key.principal === principal);
    return keys.map(({ encryptionType, version }) => `type ${encryptionType} version ${version}`).join(', ');
  }
}

/** Keys of another length, as in a damaged file, are ignored. */
function hasRightLength({ encryptionType, bytes }: KeytabKey): boolean {
  const type = ENCRYPTION_TYPES.get(encryptionType);
  return type === undefined || type.keyBytes === bytes.length;
}

/** Null when the bytes are not a keytab. */
export function parseKeytab(file: Uint8Array): Keytab | null {
  const bytes = Buffer.from(file.buffer, file.byteOffset, file.length);
  if (bytes.length < 2 || bytes.readUInt16BE(0) !== 0x0502) return null;
  const keys: KeytabKey[] = [];
  for (let at = 2; at + 4 <= bytes.length; ) {
    const size = bytes.readInt32BE(at);
    const start = at + 4;
    at = start + Math.abs(size);
    if (size === 0 || at > bytes.length) break;
    if (size < 0) continue;
    const key = readEntry(bytes.subarray(start, at));
    if (key === null) return null;
    keys.push(key);
  }
  return new Keytab(keys);
}

function readEntry(entry: Buffer): KeytabKey | null {
  let at = 0;
  const number = (size: number): number => {
    const value = at + size <= entry.length ? entry.readUIntBE(at, size) : -1;
    at += size;
    return value;
  };
  const text = (): Buffer => {
    const length = number(2);
    const value = entry.subarray(at, at + length);
    at += Math.max(length, 0);
    return value;
  };
  const count = number(2);
  const realm = text().toString('utf8');
  const components = Array.from({ length: Math.max(0, Math.min(count, 16)) }, () => text().toString('utf8'));
  at += 8;
  const shortVersion = number(1);
  const encryptionType = number(2);
  const bytes = Buffer.from(text());
  if (at > entry.length || count > 16) return null;
  const longVersion = at + 4 <= entry.length ? number(4) : 0;
  return { principal: `${components.join('/')}@${realm}`, version: longVersion || shortVersion, encryptionType, bytes };
}
