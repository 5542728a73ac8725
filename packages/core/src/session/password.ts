import type { SessionPasswords } from '../base/ports.ts';

/**
 * The password of a session, computed from its id so that it is the same on every server of an ensemble
 * (ZooKeeperServer.generatePasswd).
 *
 * It is the first 16 bytes of java.util.Random seeded with `sessionId XOR 0xB3415C00`. That generator keeps 48 bits:
 *
 *     state    = (seed XOR 0x5DEECE66D) mod 2**48
 *     state    = (state · 0x5DEECE66D + 0xB) mod 2**48      before each output
 *     output   = state >>> 16                               an int, whose bytes are taken lowest first
 *
 * The state is held as two halves of 24 bits. No product of halves reaches 2**53, so plain numbers are exact.
 */
export function makeSessionPassword(sessionId: bigint): Uint8Array {
  const id = Number(BigInt.asUintN(48, sessionId));
  let high = Math.floor(id / HALF) ^ SEED_XOR_HIGH ^ MULTIPLIER_HIGH;
  let low = (id % HALF) ^ SEED_XOR_LOW ^ MULTIPLIER_LOW;
  const password = new Uint8Array(16);
  for (let i = 0; i < 16; i += 4) {
    const lowProduct = low * MULTIPLIER_LOW + ADDEND;
    high = (high * MULTIPLIER_LOW + low * MULTIPLIER_HIGH + Math.floor(lowProduct / HALF)) % HALF;
    low = lowProduct % HALF;
    // Bits 16 … 47 of the state: all of the high half, and the 8 highest bits of the low one.
    password[i] = low >>> 16;
    password[i + 1] = high;
    password[i + 2] = high >>> 8;
    password[i + 3] = high >>> 16;
  }
  return password;
}

/** Insecure: anyone who knows the id of a session can compute its password. */
export const APACHE_SESSION_PASSWORDS: SessionPasswords = {
  make: makeSessionPassword,
  isValid: (sessionId, password) => isSamePassword(password, makeSessionPassword(sessionId)),
};

const HALF = 2 ** 24;
const MULTIPLIER_HIGH = 0x5de;
const MULTIPLIER_LOW = 0xece66d;
const ADDEND = 0xb;
/** ZooKeeper's constant 0xB3415C00, in halves. */
const SEED_XOR_HIGH = 0xb3;
const SEED_XOR_LOW = 0x415c00;

/** Compares in constant time. */
export function isSamePassword(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  let difference = 0;
  for (let i = 0; i < a.length; i++) difference |= a[i]! ^ b[i]!;
  return difference === 0;
}
