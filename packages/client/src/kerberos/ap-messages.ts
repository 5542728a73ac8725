/**
 * The messages with which a client presents a ticket to a server (RFC 4120 §5.5), for both sides.
 */
import { sequence } from '@meerkat/protocol/der';
import {
  application,
  type EncryptedData,
  type EncryptionKey,
  encryptedData,
  encryptionKey,
  expectInteger,
  field,
  fieldsIn,
  fieldsOf,
  flags,
  integer,
  NameType,
  octets,
  principalName,
  readEncryptedData,
  readInteger,
  readKey,
  readPrincipal,
  readTime,
  realmOf,
  tagged,
  text,
  time,
} from './fields.ts';

/** AP-REQ, with the ticket inside. */
export interface ApRequest {
  /** Of the service, with its realm. */
  readonly service: string;
  readonly ticket: EncryptedData;
  readonly authenticator: EncryptedData;
}

/** EncTicketPart. */
export interface Ticket {
  readonly isInvalid: boolean;
  readonly sessionKey: EncryptionKey;
  readonly client: string;
  /** Milliseconds since 1970. */
  readonly startsMs: number;
  readonly endsMs: number;
}

export interface Authenticator {
  readonly client: string;
  /** The checksum of GSS-API; null when there is another one, or none. */
  readonly gssChecksum: Uint8Array | null;
  /** Milliseconds since 1970, and the fields to be sent back. */
  readonly madeMs: number;
  readonly ctime: Uint8Array;
  readonly cusec: Uint8Array;
  readonly subkey: EncryptionKey | null;
  readonly sequenceNumber: number;
}

const Application = { ticket: 1, authenticator: 2, encTicketPart: 3, apRequest: 14, apReply: 15, encApReplyPart: 27 };
/** The type of the checksum that GSS-API puts into an authenticator. */
export const GSS_CHECKSUM = 0x8003;
/** Of the options of AP-REQ. */
const MUTUAL_REQUIRED = 0x20000000;

/** @throws DerError */
export function readApRequest(bytes: Uint8Array): ApRequest {
  const request = fieldsOf(bytes, Application.apRequest);
  expectInteger(request, 0, 5);
  expectInteger(request, 1, Application.apRequest);
  const ticket = fieldsOf(field(request, 3).bytes, Application.ticket);
  return {
    service: readPrincipal(field(ticket, 2), field(ticket, 1)),
    ticket: readEncryptedData(field(ticket, 3)),
    authenticator: readEncryptedData(field(request, 4)),
  };
}

/** @throws DerError */
export function readTicket(bytes: Uint8Array): Ticket {
  const fields = fieldsOf(bytes, Application.encTicketPart);
  const authMs = readTime(field(fields, 5));
  const starts = fields.get(6);
  return {
    // Bit 7 of the flags, after the byte that counts unused bits.
    isInvalid: ((field(fields, 0).contents[1] ?? 0) & 0x01) !== 0,
    sessionKey: readKey(field(fields, 1)),
    client: readPrincipal(field(fields, 3), field(fields, 2)),
    startsMs: starts === undefined ? authMs : readTime(starts),
    endsMs: readTime(field(fields, 7)),
  };
}

/** @throws DerError */
export function readAuthenticator(bytes: Uint8Array): Authenticator {
  const fields = fieldsOf(bytes, Application.authenticator);
  const checksum = fields.get(3);
  const parts = checksum === undefined ? null : fieldsIn(checksum);
  const isGss = parts !== null && readInteger(field(parts, 0)) === GSS_CHECKSUM;
  const subkey = fields.get(6);
  const sequenceNumber = fields.get(7);
  const [ctime, cusec] = [field(fields, 5), field(fields, 4)];
  return {
    client: readPrincipal(field(fields, 2), field(fields, 1)),
    gssChecksum: isGss ? field(parts, 1).contents : null,
    madeMs: readTime(ctime) + Math.floor(readInteger(cusec) / 1000),
    ctime: ctime.bytes,
    cusec: cusec.bytes,
    subkey: subkey === undefined ? null : readKey(subkey),
    sequenceNumber: sequenceNumber === undefined ? 0 : readInteger(sequenceNumber) >>> 0,
  };
}

/** AP-REQ: a ticket as issued by the key distribution center, and an authenticator. */
export function writeApRequest(ticket: Uint8Array, authenticator: EncryptedData, isMutual: boolean): Uint8Array {
  return application(
    Application.apRequest,
    tagged(0, integer(5)),
    tagged(1, integer(Application.apRequest)),
    tagged(2, flags(isMutual ? MUTUAL_REQUIRED : 0)),
    tagged(3, ticket),
    tagged(4, encryptedData(authenticator)),
  );
}

/** The contents of an authenticator, to be encrypted. */
export interface NewAuthenticator {
  readonly client: string;
  readonly checksum: { readonly type: number; readonly bytes: Uint8Array };
  /** Microseconds since 1970, unique among the authenticators of a client. */
  readonly madeMicros: number;
  readonly subkey: EncryptionKey | null;
  /** At most 31 bits. */
  readonly sequenceNumber: number;
}

export function writeAuthenticator(made: NewAuthenticator): Uint8Array {
  const { client, checksum, madeMicros, subkey, sequenceNumber } = made;
  return application(
    Application.authenticator,
    tagged(0, integer(5)),
    tagged(1, text(realmOf(client))),
    tagged(2, principalName(client, NameType.principal)),
    tagged(3, sequence(tagged(0, integer(checksum.type)), tagged(1, octets(checksum.bytes)))),
    tagged(4, integer(madeMicros % 1_000_000)),
    tagged(5, time(Math.floor(madeMicros / 1000))),
    ...(subkey === null ? [] : [tagged(6, encryptionKey(subkey))]),
    tagged(7, integer(sequenceNumber)),
  );
}

/** EncAPRepPart, to be encrypted. */
export function writeApReplyPart({ ctime, cusec }: Authenticator, sequenceNumber: number): Uint8Array {
  const fields = [tagged(0, ctime), tagged(1, cusec), tagged(3, integer(sequenceNumber))];
  return application(Application.encApReplyPart, ...fields);
}

/** AP-REP. */
export function writeApReply(part: EncryptedData): Uint8Array {
  const fields = [tagged(0, integer(5)), tagged(1, integer(Application.apReply)), tagged(2, encryptedData(part))];
  return application(Application.apReply, ...fields);
}

/** AP-REP: EncAPRepPart, encrypted. @throws DerError */
export function readApReply(bytes: Uint8Array): EncryptedData {
  const reply = fieldsOf(bytes, Application.apReply);
  expectInteger(reply, 0, 5);
  expectInteger(reply, 1, Application.apReply);
  return readEncryptedData(field(reply, 2));
}

/** EncAPRepPart: the time of the authenticator, which proves that the server could read it, and the server's subkey. */
export interface ApReplyPart {
  readonly madeMicros: number;
  readonly subkey: EncryptionKey | null;
}

/** @throws DerError */
export function readApReplyPart(bytes: Uint8Array): ApReplyPart {
  const fields = fieldsOf(bytes, Application.encApReplyPart);
  const subkey = fields.get(2);
  return {
    madeMicros: readTime(field(fields, 0)) * 1000 + readInteger(field(fields, 1)),
    subkey: subkey === undefined ? null : readKey(subkey),
  };
}
