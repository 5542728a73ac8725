/**
 * The secure encryption types of Kerberos: AES with HMAC-SHA-1 (RFC 3961, 3962) and with HMAC-SHA-2 (RFC 8009).
 *
 *     message := AES-CTS(Ke, confounder ‖ plaintext) ‖ HMAC(Ki, …)      Ke, Ki, Kc: derived from key and usage number
 */
import { createCipheriv, createDecipheriv, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

export interface EncryptionType {
  /** Its number in tickets and keytabs. */
  readonly number: number;
  readonly name: string;
  readonly keyBytes: number;
  /** Bytes of a checksum. */
  readonly checksumBytes: number;
  /** The number of its checksum, where that is sent. */
  readonly checksumNumber: number;
  /** Null when the message was not encrypted with this key and usage. */
  decrypt(key: Uint8Array, usage: number, message: Uint8Array): Buffer | null;
  encrypt(key: Uint8Array, usage: number, plaintext: Uint8Array): Buffer;
  checksum(key: Uint8Array, usage: number, data: Uint8Array): Buffer;
}

const BLOCK = 16;
const ZERO_IV = Buffer.alloc(BLOCK);
/** The purpose that a key is derived for. */
const Derived = { checksum: 0x99, encryption: 0xaa, integrity: 0x55 } as const;

/** AES-CTS-HMAC-SHA1-96. */
function makeSha1Type(number: number, keyBytes: number, checksumNumber: number): EncryptionType {
  const macBytes = 12;
  const mac = (key: Buffer, data: Uint8Array): Buffer =>
    createHmac('sha1', key).update(data).digest().subarray(0, macBytes);
  const derive = (key: Uint8Array, usage: number, what: number): Buffer => deriveSha1(key, usageConstant(usage, what));
  return {
    number,
    name: `aes${keyBytes * 8}-cts-hmac-sha1-96`,
    keyBytes,
    checksumBytes: macBytes,
    checksumNumber,
    decrypt(key, usage, message) {
      if (message.length < BLOCK + macBytes) return null;
      const end = message.length - macBytes;
      const plain = decryptCts(derive(key, usage, Derived.encryption), message.subarray(0, end));
      const expected = mac(derive(key, usage, Derived.integrity), plain);
      return timingSafeEqual(expected, message.subarray(end)) ? plain.subarray(BLOCK) : null;
    },
    encrypt(key, usage, plaintext) {
      const plain = Buffer.concat([randomBytes(BLOCK), plaintext]);
      const sealed = encryptCts(derive(key, usage, Derived.encryption), plain);
      return Buffer.concat([sealed, mac(derive(key, usage, Derived.integrity), plain)]);
    },
    checksum: (key, usage, data) => mac(derive(key, usage, Derived.checksum), data),
  };
}

/** AES-CTS-HMAC-SHA256-128 and AES-CTS-HMAC-SHA384-192: the HMAC covers the ciphertext. */
function makeSha2Type(number: number, keyBytes: number, hash: 'sha256' | 'sha384', macBytes: number): EncryptionType {
  const mac = (key: Buffer, data: Uint8Array): Buffer =>
    createHmac(hash, key).update(data).digest().subarray(0, macBytes);
  const derive = (key: Uint8Array, usage: number, what: number): Buffer => {
    const bytes = what === Derived.encryption ? keyBytes : macBytes;
    const bits = Buffer.alloc(4);
    bits.writeUInt32BE(bytes * 8);
    const input = Buffer.concat([Buffer.from([0, 0, 0, 1]), usageConstant(usage, what), Buffer.from([0]), bits]);
    return createHmac(hash, key).update(input).digest().subarray(0, bytes);
  };
  return {
    number,
    name: `aes${keyBytes * 8}-cts-hmac-${hash}-${macBytes * 8}`,
    keyBytes,
    checksumBytes: macBytes,
    checksumNumber: number,
    decrypt(key, usage, message) {
      if (message.length < BLOCK + macBytes) return null;
      const end = message.length - macBytes;
      const sealed = message.subarray(0, end);
      const expected = mac(derive(key, usage, Derived.integrity), Buffer.concat([ZERO_IV, sealed]));
      if (!timingSafeEqual(expected, message.subarray(end))) return null;
      return decryptCts(derive(key, usage, Derived.encryption), sealed).subarray(BLOCK);
    },
    encrypt(key, usage, plaintext) {
      const plain = Buffer.concat([randomBytes(BLOCK), plaintext]);
      const sealed = encryptCts(derive(key, usage, Derived.encryption), plain);
      return Buffer.concat([sealed, mac(derive(key, usage, Derived.integrity), Buffer.concat([ZERO_IV, sealed]))]);
    },
    checksum: (key, usage, data) => mac(derive(key, usage, Derived.checksum), data),
  };
}

/** By their numbers. */
export const ENCRYPTION_TYPES: ReadonlyMap<number, EncryptionType> = new Map(
  [
    makeSha1Type(17, 16, 15),
    makeSha1Type(18, 32, 16),
    makeSha2Type(19, 16, 'sha256', 16),
    makeSha2Type(20, 32, 'sha384', 24),
  ].map((type) => [type.number, type]),
);

function usageConstant(usage: number, what: number): Buffer {
  const constant = Buffer.alloc(5);
  constant.writeUInt32BE(usage);
  constant[4] = what;
  return constant;
}

/** DK of RFC 3961: the constant, folded to a block, is encrypted repeatedly until there are enough bytes. */
function deriveSha1(key: Uint8Array, constant: Buffer): Buffer {
  const blocks: Buffer[] = [];
  let block: Buffer = nFold(constant, BLOCK);
  for (let bytes = 0; bytes < key.length; bytes += BLOCK) {
    block = encryptCbc(key, block);
    blocks.push(block);
  }
  return Buffer.concat(blocks).subarray(0, key.length);
}

/**
 * RFC 3961 §5.1: copies of the input, each rotated by 13 bits more than the one before, are added in pieces of `size`
 * bytes, with end-around carry.
 */
export function nFold(input: Uint8Array, size: number): Buffer {
  const bits = input.length * 8;
  const bitAt = (position: number): number => {
    const copy = Math.floor(position / bits);
    const at = (((position - 13 * copy) % bits) + bits) % bits;
    return ((input[at >> 3] ?? 0) >> (7 - (at & 7))) & 1;
  };
  const total = leastCommonMultiple(input.length, size);
  const sum = Buffer.alloc(size);
  let carry = 0;
  for (let i = total - 1; i >= 0; i--) {
    let byte = 0;
    for (let bit = 0; bit < 8; bit++) byte = (byte << 1) | bitAt(i * 8 + bit);
    carry += byte + (sum[i % size] ?? 0);
    sum[i % size] = carry & 0xff;
    carry >>= 8;
  }
  for (let i = size - 1; carry > 0; i = (i + size - 1) % size) {
    carry += sum[i] ?? 0;
    sum[i] = carry & 0xff;
    carry >>= 8;
  }
  return sum;
}

function leastCommonMultiple(a: number, b: number): number {
  let [x, y] = [a, b];
  while (y !== 0) [x, y] = [y, x % y];
  return (a / x) * b;
}

/** CBC with ciphertext stealing (CS3: the last two blocks are swapped), with an IV of zeros. */
export function encryptCts(key: Uint8Array, plain: Uint8Array): Buffer {
  if (plain.length <= BLOCK) return encryptCbc(key, plain);
  const last = plain.length - BLOCK * (Math.ceil(plain.length / BLOCK) - 1);
  const padded = Buffer.concat([plain, Buffer.alloc(BLOCK - last)]);
  const blocks = encryptCbc(key, padded);
  const end = padded.length;
  return Buffer.concat([
    blocks.subarray(0, end - 2 * BLOCK),
    blocks.subarray(end - BLOCK),
    blocks.subarray(end - 2 * BLOCK, end - 2 * BLOCK + last),
  ]);
}

export function decryptCts(key: Uint8Array, sealed: Uint8Array): Buffer {
  if (sealed.length <= BLOCK) return decryptCbc(key, sealed);
  const lastAt = BLOCK * (Math.ceil(sealed.length / BLOCK) - 1);
  const last = sealed.subarray(lastAt);
  const final = sealed.subarray(lastAt - BLOCK, lastAt);
  // The part that was stolen from the block before the last.
  const stolen = decryptCbc(key, final).subarray(last.length);
  const blocks = Buffer.concat([sealed.subarray(0, lastAt - BLOCK), last, stolen, final]);
  return decryptCbc(key, blocks).subarray(0, sealed.length);
}

function encryptCbc(key: Uint8Array, plain: Uint8Array): Buffer {
  const cipher = createCipheriv(`aes-${key.length * 8}-cbc`, key, ZERO_IV).setAutoPadding(false);
  return Buffer.concat([cipher.update(plain), cipher.final()]);
}

function decryptCbc(key: Uint8Array, sealed: Uint8Array): Buffer {
  const cipher = createDecipheriv(`aes-${key.length * 8}-cbc`, key, ZERO_IV).setAutoPadding(false);
  return Buffer.concat([cipher.update(sealed), cipher.final()]);
}
