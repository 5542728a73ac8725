/**
 * Tokens of GSS-API with Kerberos (RFC 4121): the first ones are framed, later ones wrapped with a checksum.
 *
 *     framed  := [APPLICATION 0] { object identifier of Kerberos, u2 kind of message, message }
 *     wrapped := 05 04, u1 flags, ff, u2 EC, u2 RRC, u8 sequence number, then rotated to the right by RRC bytes: text, checksum of EC bytes
 *
 * Nothing here is encrypted: SASL needs the checksum alone.
 */
import { timingSafeEqual } from 'node:crypto';
import { DerTag, formatObjectIdentifier, objectIdentifier, readDer, writeDer } from '@meerkat/protocol/der';
import type { EncryptionType } from './encryption.ts';

/** Kinds of framed messages. */
export const TokenId = { apRequest: 0x0100, apReply: 0x0200 } as const;
/** What a key is used for (RFC 4120 §7.5.1, RFC 4121 §2). */
export const KeyUsage = {
  encryptedTimestamp: 1,
  ticket: 2,
  asReply: 3,
  tgsRequestChecksum: 6,
  tgsRequest: 7,
  tgsReply: 8,
  authenticator: 11,
  apReply: 12,
  acceptorWrap: 22,
  initiatorWrap: 24,
} as const;

/** Which side has wrapped a token. */
export type Wrapper = 'initiator' | 'acceptor';

export interface WrapKey {
  readonly type: EncryptionType;
  readonly key: Uint8Array;
  /** The acceptor has chosen it. */
  readonly isOfAcceptor: boolean;
}

const MECHANISM = '1.2.840.113554.1.2.2';
const WRAP_ID = 0x0504;
const WRAP_HEADER_BYTES = 16;
const Flag = { sentByAcceptor: 1, acceptorSubkey: 4 } as const;

export function frame(id: number, message: Uint8Array): Uint8Array {
  return writeDer(0x60, objectIdentifier(MECHANISM), Uint8Array.of(id >> 8, id & 0xff), message);
}

/** @throws DerError when it is not a token of Kerberos; null when it is of another kind */
export function unframe(id: number, token: Uint8Array): Uint8Array | null {
  const { contents } = readDer(token, 0x60);
  const mechanism = readDer(contents, DerTag.objectIdentifier);
  const at = mechanism.bytes.length;
  const found = ((contents[at] ?? 0) << 8) | (contents[at + 1] ?? 0);
  return formatObjectIdentifier(mechanism) === MECHANISM && found === id ? contents.subarray(at + 2) : null;
}

export function wrap(by: Wrapper, wrapKey: WrapKey, sequenceNumber: number, text: Uint8Array): Uint8Array {
  const header = Buffer.alloc(WRAP_HEADER_BYTES);
  header.writeUInt16BE(WRAP_ID);
  header[2] = flagsOf(by, wrapKey);
  header[3] = 0xff;
  header.writeUInt32BE(sequenceNumber, 12);
  // The length of the checksum and the rotation count as zero in the checksum.
  const checksum = wrapKey.type.checksum(wrapKey.key, usageOf(by), Buffer.concat([text, header]));
  header.writeUInt16BE(checksum.length, 4);
  return Buffer.concat([header, text, checksum]);
}

/** The text of a token, or a description of what is wrong with it. */
export function unwrap(by: Wrapper, wrapKey: WrapKey, token: Uint8Array): Uint8Array | string {
  const bytes = Buffer.from(token.buffer, token.byteOffset, token.length);
  if (bytes.length < WRAP_HEADER_BYTES || bytes.readUInt16BE() !== WRAP_ID || bytes[3] !== 0xff)
    return 'is not wrapped';
  // Sent by an acceptor, sealed, with a subkey of the acceptor.
  const expectedFlags = flagsOf(by, wrapKey);
  if (bytes[2] !== expectedFlags) return `has the flags ${bytes[2]}, expected ${expectedFlags}`;
  const checksumBytes = bytes.readUInt16BE(4);
  const body = bytes.subarray(WRAP_HEADER_BYTES);
  const rotation = body.length === 0 ? 0 : bytes.readUInt16BE(6) % body.length;
  const straight = Buffer.concat([body.subarray(rotation), body.subarray(0, rotation)]);
  const end = straight.length - checksumBytes;
  if (checksumBytes !== wrapKey.type.checksumBytes || end < 4) return 'is too short';
  const header = Buffer.from(bytes.subarray(0, WRAP_HEADER_BYTES));
  header.fill(0, 4, 8);
  const text = straight.subarray(0, end);
  const expected = wrapKey.type.checksum(wrapKey.key, usageOf(by), Buffer.concat([text, header]));
  return timingSafeEqual(expected, straight.subarray(end)) ? text : 'has a wrong checksum';
}

function usageOf(by: Wrapper): number {
  return by === 'initiator' ? KeyUsage.initiatorWrap : KeyUsage.acceptorWrap;
}

function flagsOf(by: Wrapper, { isOfAcceptor }: WrapKey): number {
  return (by === 'acceptor' ? Flag.sentByAcceptor : 0) | (isOfAcceptor ? Flag.acceptorSubkey : 0);
}
