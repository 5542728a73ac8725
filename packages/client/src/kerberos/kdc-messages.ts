/**
 * The messages between a client and a key distribution center (RFC 4120 §5.4): AS issues a ticket-granting ticket for a
 * key, TGS a service ticket for that one.
 */
import { DerTag, readDer, readDerValues, sequence } from '@meerkat/protocol/der';
import {
  application,
  type EncryptedData,
  type EncryptionKey,
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
  readText,
  readTime,
  realmOf,
  tagged,
  text,
  time,
} from './fields.ts';

export interface KdcRequest {
  /** The client, for AS; null for TGS, where it is in the ticket. */
  readonly client: string | null;
  /** With its realm, whose key distribution center is asked. */
  readonly service: string;
  /** Of the session key, in order of preference. */
  readonly encryptionTypes: readonly number[];
  /** Of 31 bits. */
  readonly nonce: number;
  /** The maximum validity of the ticket. Milliseconds since 1970. */
  readonly untilMs: number;
}

/** A client's proof of identity. */
export interface PreAuthentication {
  readonly type: number;
  readonly value: Uint8Array;
}

export const PreAuthType = { tgsRequest: 1, encryptedTimestamp: 2, encryptionTypes: 19, cookie: 133 } as const;

export interface KdcReply {
  readonly kind: 'reply';
  readonly client: string;
  /** DER of the ticket, unchanged. */
  readonly ticket: Uint8Array;
  readonly part: EncryptedData;
}

/** KRB-ERROR. */
export interface KdcRefusal {
  readonly kind: 'refusal';
  readonly code: number;
  /** The clock of the sender. Milliseconds since 1970. */
  readonly serverMs: number;
  readonly text: string;
  /** Of the required key, when pre-authentication is missing. */
  readonly encryptionTypes: readonly number[];
  /** To be sent back with the proof (RFC 6113 §5.2); null when there is none. */
  readonly cookie: Uint8Array | null;
}

/** EncKDCRepPart. */
export interface KdcReplyPart {
  readonly sessionKey: EncryptionKey;
  readonly nonce: number;
  readonly service: string;
  /** Milliseconds since 1970. */
  readonly startsMs: number;
  readonly endsMs: number;
}

const Application = { asRequest: 10, asReply: 11, tgsRequest: 12, tgsReply: 13, asPart: 25, tgsPart: 26, error: 30 };

/** KDC-REQ-BODY, over which the checksum of a TGS-REQ is made. */
export function writeRequestBody({ client, service, encryptionTypes, nonce, untilMs }: KdcRequest): Uint8Array {
  const type = service.startsWith('krbtgt/') ? NameType.service : NameType.hostService;
  return sequence(
    tagged(0, flags(0)),
    ...(client === null ? [] : [tagged(1, principalName(client, NameType.principal))]),
    tagged(2, text(realmOf(service))),
    tagged(3, principalName(service, type)),
    tagged(5, time(untilMs)),
    tagged(7, integer(nonce)),
    tagged(8, sequence(...encryptionTypes.map(integer))),
  );
}

/** AS-REQ or TGS-REQ. */
export function writeRequest(kind: 'as' | 'tgs', body: Uint8Array, proofs: readonly PreAuthentication[]): Uint8Array {
  const number = kind === 'as' ? Application.asRequest : Application.tgsRequest;
  const list = proofs.map(({ type, value }) => sequence(tagged(1, integer(type)), tagged(2, octets(value))));
  return application(
    number,
    tagged(1, integer(5)),
    tagged(2, integer(number)),
    ...(list.length === 0 ? [] : [tagged(3, sequence(...list))]),
    tagged(4, body),
  );
}

/** PA-ENC-TS-ENC, to be encrypted. */
export function writeTimestamp(nowMicros: number): Uint8Array {
  return sequence(tagged(0, time(Math.floor(nowMicros / 1000))), tagged(1, integer(nowMicros % 1_000_000)));
}

/** @throws DerError */
export function readReply(kind: 'as' | 'tgs', bytes: Uint8Array): KdcReply | KdcRefusal {
  if (bytes[0] === 0x60 + Application.error) return readError(bytes);
  const reply = fieldsOf(bytes, kind === 'as' ? Application.asReply : Application.tgsReply);
  return {
    kind: 'reply',
    client: readPrincipal(field(reply, 4), field(reply, 3)),
    ticket: field(reply, 5).bytes,
    part: readEncryptedData(field(reply, 6)),
  };
}

/** Some centers use the tag of the other message. @throws DerError */
export function readReplyPart(bytes: Uint8Array): KdcReplyPart {
  const number = bytes[0] === 0x60 + Application.asPart ? Application.asPart : Application.tgsPart;
  const fields = fieldsOf(bytes, number);
  const starts = fields.get(6) ?? field(fields, 5);
  return {
    sessionKey: readKey(field(fields, 0)),
    nonce: readInteger(field(fields, 2)),
    service: readPrincipal(field(fields, 10), field(fields, 9)),
    startsMs: readTime(starts),
    endsMs: readTime(field(fields, 7)),
  };
}

function readError(bytes: Uint8Array): KdcRefusal {
  const fields = fieldsOf(bytes, Application.error);
  const words = fields.get(11);
  const data = fields.get(12);
  return {
    kind: 'refusal',
    code: readInteger(field(fields, 6)),
    serverMs: readTime(field(fields, 4)),
    text: words === undefined ? '' : readText(words),
    ...readMethods(data?.contents ?? null),
  };
}

/** METHOD-DATA, the accepted proofs of identity; invalid data is ignored. */
function readMethods(data: Uint8Array | null): Pick<KdcRefusal, 'encryptionTypes' | 'cookie'> {
  const none = { encryptionTypes: [], cookie: null };
  if (data === null) return none;
  try {
    const methods = new Map<number, Uint8Array>();
    for (const entry of readDerValues(readDer(data, DerTag.sequence).contents)) {
      const fields = fieldsIn(entry);
      methods.set(readInteger(field(fields, 1)), field(fields, 2).contents);
    }
    const info = methods.get(PreAuthType.encryptionTypes);
    const entries = info === undefined ? [] : readDerValues(readDer(info, DerTag.sequence).contents);
    return {
      encryptionTypes: entries.map((each) => readInteger(field(fieldsIn(each), 0))),
      cookie: methods.get(PreAuthType.cookie) ?? null,
    };
  } catch {
    return none;
  }
}
