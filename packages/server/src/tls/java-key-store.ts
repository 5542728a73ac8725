import { createHash, createPrivateKey, timingSafeEqual, X509Certificate } from 'node:crypto';
import { DerTag, formatObjectIdentifier, readDer, readDerValues } from '@meerkat/protocol/der';
import { type StoreContents, type StoredKey, StoreFault } from './store-contents.ts';

/**
 * Reads a key store of Java (`JKS`); all numbers have their highest byte first:
 *
 *     store := u4 0xFEEDFEED, u4 version, u4 count, entry * count, 20 bytes digest
 *     entry := u4 1, text alias, u8 ms, u4 length, key, u4 count, certificate * count     a key with its chain
 *            | u4 2, text alias, u8 ms, certificate                                       a certificate that is trusted
 *     certificate := text "X.509", u4 length, DER
 *     text := u2 length, modified UTF-8
 *     digest := SHA1(password as UTF-16BE, "Mighty Aphrodite", everything before)
 *
 * @throws StoreFault
 */
export function readJavaKeyStore(bytes: Uint8Array, password: string): StoreContents {
  const passwordBytes = Buffer.from(password, 'utf16le').swap16();
  const body = bytes.subarray(0, -DIGEST_BYTES);
  const reader = new StoreReader(body);
  reader.skip(4);
  const version = reader.uint32();
  if (version !== 2 && version !== 1) throw new StoreFault(`a Java key store of version ${version}`, 'version 2');
  const digest = createHash('sha1').update(passwordBytes).update('Mighty Aphrodite').update(body).digest();
  const found = bytes.subarray(-DIGEST_BYTES);
  if (found.length !== DIGEST_BYTES || !timingSafeEqual(digest, found)) {
    throw new StoreFault(
      'a Java key store whose digest is not that of this password',
      'the right password, or a file that is not damaged',
    );
  }
  const keys: StoredKey[] = [];
  const trusted: X509Certificate[] = [];
  for (let left = reader.uint32(); left > 0; left--) {
    const tag = reader.uint32();
    const alias = reader.text();
    reader.skip(8);
    if (tag === 1) {
      const encrypted = reader.block();
      const chain = Array.from({ length: reader.count() }, () => reader.certificate(version));
      keys.push({ key: decryptKey(encrypted, passwordBytes, alias), certificates: chain });
    } else if (tag === 2) {
      trusted.push(reader.certificate(version));
    } else {
      throw new StoreFault(`an entry of kind ${tag}`, 'keys and certificates only');
    }
  }
  return { format: 'JKS', keys, trusted };
}

/**
 *     key := SEQUENCE { SEQUENCE { 1.3.6.1.4.1.42.2.17.1.1, … }, OCTET STRING }
 *     octets := salt 20, ciphertext, check 20
 *     W₀ = salt, Wᵢ = SHA1(password, Wᵢ₋₁); plaintext = ciphertext xor W₁ W₂ …; check = SHA1(password, plaintext)
 */
function decryptKey(encrypted: Uint8Array, password: Uint8Array, alias: string): StoredKey['key'] {
  const [algorithm, octets] = readDerValues(readDer(encrypted, DerTag.sequence).contents);
  const oid =
    algorithm === undefined ? '' : formatObjectIdentifier(readDer(algorithm.contents, DerTag.objectIdentifier));
  if (oid !== KEY_PROTECTOR || octets === undefined)
    throw new StoreFault(`the key "${alias}", encrypted by ${oid}`, KEY_PROTECTOR);
  const data = octets.contents;
  const ciphertext = data.subarray(DIGEST_BYTES, -DIGEST_BYTES);
  const plaintext = Buffer.alloc(ciphertext.length);
  let mask = data.subarray(0, DIGEST_BYTES);
  for (let at = 0; at < ciphertext.length; at++) {
    if (at % DIGEST_BYTES === 0) mask = createHash('sha1').update(password).update(mask).digest();
    plaintext[at] = ciphertext[at]! ^ mask[at % DIGEST_BYTES]!;
  }
  const check = createHash('sha1').update(password).update(plaintext).digest();
  const expected = data.subarray(-DIGEST_BYTES);
  if (expected.length !== DIGEST_BYTES || !timingSafeEqual(check, expected)) {
    throw new StoreFault(`the key "${alias}" under another password than the store`, 'the same password for both');
  }
  return createPrivateKey({ key: plaintext, format: 'der', type: 'pkcs8' });
}

class StoreReader {
  readonly #bytes: DataView;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  skip(length: number): void {
    this.#take(length);
  }

  uint32(): number {
    return this.#bytes.getUint32(this.#take(4));
  }

  /** How many certificates follow, each of which takes more than a byte. */
  count(): number {
    const count = this.uint32();
    if (count > this.#bytes.byteLength) throw TRUNCATED;
    return count;
  }

  text(): string {
    const length = this.#bytes.getUint16(this.#take(2));
    return Buffer.from(this.#slice(length)).toString('utf8');
  }

  block(): Uint8Array {
    return this.#slice(this.uint32());
  }

  certificate(version: number): X509Certificate {
    const type = version === 1 ? 'X.509' : this.text();
    if (type !== 'X.509') throw new StoreFault(`a certificate of type ${type}`, 'X.509');
    return new X509Certificate(this.block());
  }

  #slice(length: number): Uint8Array {
    const at = this.#take(length);
    return new Uint8Array(this.#bytes.buffer, this.#bytes.byteOffset + at, length);
  }

  #take(length: number): number {
    const at = this.#at;
    if (length > this.#bytes.byteLength - at) throw TRUNCATED;
    this.#at += length;
    return at;
  }
}

const DIGEST_BYTES = 20;
const KEY_PROTECTOR = '1.3.6.1.4.1.42.2.17.1.1';
const TRUNCATED = new StoreFault('a Java key store that ends too early', 'a whole file');
