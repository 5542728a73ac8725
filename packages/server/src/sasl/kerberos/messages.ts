/**
 * The messages of Kerberos that a server reads and writes (RFC 4120), as far as it needs them.
 *
 * Every one is a SEQUENCE of numbered fields inside an APPLICATION tag.
 */
import { DerError, DerTag, type DerValue, readDer, readDerValues } from '../../tls/der.ts';
import { sequence, writeDer } from '../../tls/der-writer.ts';

export interface EncryptedData {
  readonly encryptionType: number;
  /** Version of the key; null when it is not said. */
  readonly version: number | null;
  readonly cipher: Uint8Array;
}

export interface EncryptionKey {
  readonly encryptionType: number;
  readonly bytes: Uint8Array;
}

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
  /** The checksum that GSS-API puts there; null when there is another one, or none. */
  readonly gssChecksum: Uint8Array | null;
  /** Milliseconds since 1970, and the parts as they are to be sent back. */
  readonly madeMs: number;
  readonly ctime: Uint8Array;
  readonly cusec: Uint8Array;
  readonly subkey: EncryptionKey | null;
  readonly sequenceNumber: number;
}

const Application = { ticket: 1, authenticator: 2, encTicketPart: 3, apRequest: 14, apReply: 15, encApReplyPart: 27 };
const GSS_CHECKSUM = 0x8003;

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
    // Bit 7 of the flags, behind the byte that counts unused bits.
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

/** EncAPRepPart, to be encrypted. */
export function writeApReplyPart({ ctime, cusec }: Authenticator, sequenceNumber: number): Uint8Array {
  const fields = [tagged(0, ctime), tagged(1, cusec), tagged(3, integer(sequenceNumber))];
  return writeDer(0x60 + Application.encApReplyPart, sequence(...fields));
}

/** AP-REP. */
export function writeApReply({ encryptionType, cipher }: Omit<EncryptedData, 'version'>): Uint8Array {
  const encrypted = sequence(tagged(0, integer(encryptionType)), tagged(2, writeDer(DerTag.octetString, cipher)));
  const fields = [tagged(0, integer(5)), tagged(1, integer(Application.apReply)), tagged(2, encrypted)];
  return writeDer(0x60 + Application.apReply, sequence(...fields));
}

/* --------------------------------------------------------------------------------------------- the parts ---- */

type Fields = ReadonlyMap<number, DerValue>;

function fieldsOf(bytes: Uint8Array, application: number): Fields {
  return fieldsIn(readDer(readDer(bytes, 0x60 + application).contents, DerTag.sequence));
}

function fieldsIn(value: DerValue): Fields {
  if (value.tag !== DerTag.sequence) throw new DerError(`found tag 0x${value.tag.toString(16)}, expected a SEQUENCE`);
  return new Map(readDerValues(value.contents).map(({ tag, contents }) => [tag - 0xa0, readDer(contents)]));
}

function field(fields: Fields, number: number): DerValue {
  const value = fields.get(number);
  if (value === undefined) throw new DerError(`there is no field ${number}`);
  return value;
}

function expectInteger(fields: Fields, number: number, expected: number): void {
  const value = readInteger(field(fields, number));
  if (value !== expected) throw new DerError(`field ${number} is ${value}, expected ${expected}`);
}

function readInteger({ tag, contents }: DerValue): number {
  if (tag !== DerTag.integer || contents.length === 0 || contents.length > 6) throw new DerError('a number is none');
  return Buffer.from(contents).readIntBE(0, contents.length);
}

function readTime({ tag, contents }: DerValue): number {
  const match = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/.exec(Buffer.from(contents).toString('latin1'));
  if (tag !== DerTag.generalizedTime || match === null) throw new DerError('a time is none');
  const [year = 0, month = 0, ...rest] = match.slice(1).map(Number);
  return Date.UTC(year, month - 1, ...rest);
}

function readText({ contents }: DerValue): string {
  return Buffer.from(contents).toString('utf8');
}

/** `a/b@REALM`. A name that would read as another one is refused. */
function readPrincipal(name: DerValue, realm: DerValue): string {
  const parts = readDerValues(field(fieldsIn(name), 1).contents).map(readText);
  const all = [...parts, readText(realm)];
  if (parts.length === 0 || all.some((part) => /[/@\\\0]/.test(part))) throw new DerError('a principal is none');
  return `${parts.join('/')}@${readText(realm)}`;
}

function readEncryptedData(value: DerValue): EncryptedData {
  const fields = fieldsIn(value);
  const version = fields.get(1);
  return {
    encryptionType: readInteger(field(fields, 0)),
    version: version === undefined ? null : readInteger(version),
    cipher: field(fields, 2).contents,
  };
}

function readKey(value: DerValue): EncryptionKey {
  const fields = fieldsIn(value);
  return { encryptionType: readInteger(field(fields, 0)), bytes: field(fields, 1).contents };
}

function tagged(number: number, value: Uint8Array): Uint8Array {
  return writeDer(0xa0 + number, value);
}

/** A whole number of at most 32 bits that is not negative. */
function integer(value: number): Uint8Array {
  const bytes = Buffer.alloc(5);
  bytes.writeUInt32BE(value, 1);
  let start = 0;
  while (start < 4 && bytes[start] === 0 && (bytes[start + 1] ?? 0) < 0x80) start++;
  return writeDer(DerTag.integer, bytes.subarray(start));
}
