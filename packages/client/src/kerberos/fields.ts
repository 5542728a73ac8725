/**
 * The building blocks of Kerberos messages (RFC 4120 §5.2): a SEQUENCE of numbered fields, often inside an APPLICATION
 * tag.
 */
import { DerError, DerTag, type DerValue, readDer, readDerValues, sequence, writeDer } from '@meerkat/protocol/der';

export interface EncryptedData {
  readonly encryptionType: number;
  /** Version of the key; null when it is not given. */
  readonly version: number | null;
  readonly cipher: Uint8Array;
}

export interface EncryptionKey {
  readonly encryptionType: number;
  readonly bytes: Uint8Array;
}

/** The type of a principal; key distribution centers ignore it. */
export const NameType = { principal: 1, service: 2, hostService: 3 } as const;

export type Fields = ReadonlyMap<number, DerValue>;

const GENERAL_STRING = 0x1b;

/* ------------------------------------------------------------------------------------------------ reading ---- */

/** @throws DerError */
export function fieldsOf(bytes: Uint8Array, application: number): Fields {
  return fieldsIn(readDer(readDer(bytes, 0x60 + application).contents, DerTag.sequence));
}

/** @throws DerError */
export function fieldsIn(value: DerValue): Fields {
  if (value.tag !== DerTag.sequence) throw new DerError(`found tag 0x${value.tag.toString(16)}, expected a SEQUENCE`);
  return new Map(readDerValues(value.contents).map(({ tag, contents }) => [tag - 0xa0, readDer(contents)]));
}

/** @throws DerError when it is missing */
export function field(fields: Fields, number: number): DerValue {
  const value = fields.get(number);
  if (value === undefined) throw new DerError(`there is no field ${number}`);
  return value;
}

/** @throws DerError */
export function expectInteger(fields: Fields, number: number, expected: number): void {
  const value = readInteger(field(fields, number));
  if (value !== expected) throw new DerError(`field ${number} is ${value}, expected ${expected}`);
}

/** @throws DerError */
export function readInteger({ tag, contents }: DerValue): number {
  if (tag !== DerTag.integer || contents.length === 0 || contents.length > 6) throw new DerError('a number is none');
  return Buffer.from(contents).readIntBE(0, contents.length);
}

/** Milliseconds since 1970. @throws DerError */
export function readTime({ tag, contents }: DerValue): number {
  const match = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/.exec(Buffer.from(contents).toString('latin1'));
  if (tag !== DerTag.generalizedTime || match === null) throw new DerError('a time is none');
  const [year = 0, month = 0, ...rest] = match.slice(1).map(Number);
  return Date.UTC(year, month - 1, ...rest);
}

export function readText({ contents }: DerValue): string {
  return Buffer.from(contents).toString('utf8');
}

/** `a/b@REALM`. A name that would be parsed as another one is refused. @throws DerError */
export function readPrincipal(name: DerValue, realm: DerValue): string {
  const parts = readDerValues(field(fieldsIn(name), 1).contents).map(readText);
  const all = [...parts, readText(realm)];
  if (parts.length === 0 || all.some((part) => /[/@\\\0]/.test(part))) throw new DerError('a principal is none');
  return `${parts.join('/')}@${readText(realm)}`;
}

/** @throws DerError */
export function readEncryptedData(value: DerValue): EncryptedData {
  const fields = fieldsIn(value);
  const version = fields.get(1);
  return {
    encryptionType: readInteger(field(fields, 0)),
    version: version === undefined ? null : readInteger(version),
    cipher: field(fields, 2).contents,
  };
}

/** @throws DerError */
export function readKey(value: DerValue): EncryptionKey {
  const fields = fieldsIn(value);
  return { encryptionType: readInteger(field(fields, 0)), bytes: field(fields, 1).contents };
}

/* ------------------------------------------------------------------------------------------------ writing ---- */

/** A SEQUENCE of fields inside an APPLICATION tag. */
export function application(number: number, ...fields: readonly Uint8Array[]): Uint8Array {
  return writeDer(0x60 + number, sequence(...fields));
}

/** A numbered field. */
export function tagged(number: number, value: Uint8Array): Uint8Array {
  return writeDer(0xa0 + number, value);
}

/** A non-negative integer of at most 32 bits. */
export function integer(value: number): Uint8Array {
  const bytes = Buffer.alloc(5);
  bytes.writeUInt32BE(value, 1);
  let start = 0;
  while (start < 4 && bytes[start] === 0 && (bytes[start + 1] ?? 0) < 0x80) start++;
  return writeDer(DerTag.integer, bytes.subarray(start));
}

export function octets(bytes: Uint8Array): Uint8Array {
  return writeDer(DerTag.octetString, bytes);
}

export function text(value: string): Uint8Array {
  return writeDer(GENERAL_STRING, Buffer.from(value, 'utf8'));
}

/** 32 bits, the highest first. */
export function flags(bits: number): Uint8Array {
  const bytes = Buffer.alloc(5);
  bytes.writeUInt32BE(bits, 1);
  return writeDer(DerTag.bitString, bytes);
}

/** Whole seconds. */
export function time(ms: number): Uint8Array {
  const digits = new Date(ms).toISOString().replace(/[-:T]|\.\d+/g, '');
  return writeDer(DerTag.generalizedTime, Buffer.from(digits, 'latin1'));
}

/** The components of `a/b` or `a/b@REALM`. */
export function principalName(principal: string, type: number): Uint8Array {
  const [name = ''] = principal.split('@');
  return sequence(tagged(0, integer(type)), tagged(1, sequence(...name.split('/').map(text))));
}

export function encryptedData({ encryptionType, version, cipher }: EncryptedData): Uint8Array {
  const versionField = version === null ? [] : [tagged(1, integer(version))];
  return sequence(tagged(0, integer(encryptionType)), ...versionField, tagged(2, octets(cipher)));
}

export function encryptionKey({ encryptionType, bytes }: EncryptionKey): Uint8Array {
  return sequence(tagged(0, integer(encryptionType)), tagged(1, octets(bytes)));
}

/** The realm of `a/b@REALM`; '' when it has none. */
export function realmOf(principal: string): string {
  return principal.slice(principal.indexOf('@') + 1 || principal.length);
}
