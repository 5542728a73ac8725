import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Identity, SaslConversation, SaslStep } from '@meerkat/core';
import { DerError, DerTag, formatObjectIdentifier, readDer } from '../../tls/der.ts';
import { objectIdentifier, writeDer } from '../../tls/der-writer.ts';
import { ENCRYPTION_TYPES, type EncryptionType } from './encryption.ts';
import type { Keytab } from './keytab.ts';
import {
  type Authenticator,
  type EncryptedData,
  type EncryptionKey,
  readApRequest,
  readAuthenticator,
  readTicket,
  type Ticket,
  writeApReply,
  writeApReplyPart,
} from './messages.ts';
import type { ReplayCache } from './replay-cache.ts';

export interface GssapiServerOptions {
  /** Of this service, with its realm: `zookeeper/host@REALM`. */
  readonly principal: string;
  /** The keys; asked for with each exchange, so that they may be renewed. */
  keytab(mustBeNew: boolean): Keytab;
  readonly replays: ReplayCache;
  /** Milliseconds since 1970. */
  nowMs(): number;
  /** As whom a principal is known here, or in words why as nobody. */
  authorize(principal: string): readonly Identity[] | string;
}

const MECHANISM = '1.2.840.113554.1.2.2';
const TokenId = { apRequest: [1, 0], apReply: [2, 0], wrap: [5, 4] } as const;
/** What a key is used for. */
const Usage = { ticket: 2, authenticator: 11, apReply: 12, acceptorWrap: 22, initiatorWrap: 24 } as const;
const CLOCK_SKEW_MS = 300_000;
const MUTUAL_FLAG = 2;
const NO_LAYER = 1;
/** No layer, and messages of 64 KiB, as Java's server says it. */
const OFFER = Uint8Array.of(NO_LAYER, 1, 0, 0);
const WRAP_HEADER_BYTES = 16;

/** What is sealed with after the ticket was accepted. */
interface Context {
  readonly client: string;
  readonly type: EncryptionType;
  readonly key: Uint8Array;
  readonly sequenceNumber: number;
}

/** Ends an exchange; never leaves this file. */
class Refusal extends Error {}

/**
 * The acceptor of SASL GSSAPI with Kerberos (RFC 4752, 4121, 4120).
 *
 *     client                                      server
 *     AP-REQ: ticket, authenticator        ──►
 *                                          ◄──    AP-REP, when the client asks for it; it answers with an empty token
 *                                          ◄──    wrapped: no layer, 64 KiB
 *     wrapped: no layer, name to act as    ──►
 *                                          ◄──    no token
 *
 * The ticket says who the client is. A name to act as is that one, or refused.
 */
export class GssapiServer implements SaslConversation {
  readonly #options: GssapiServerOptions;
  #phase: 'request' | 'reply' | 'choice' = 'request';
  #context: Context | null = null;

  constructor(options: GssapiServerOptions) {
    this.#options = options;
  }

  step(token: Uint8Array): SaslStep {
    try {
      return this.#step(token);
    } catch (error) {
      if (error instanceof Refusal) return { kind: 'failure', reason: error.message };
      if (error instanceof DerError) return { kind: 'failure', reason: `its token cannot be read: ${error.message}` };
      throw error;
    }
  }

  #step(token: Uint8Array): SaslStep {
    const context = this.#context;
    if (context === null || this.#phase === 'request') return this.#accept(token);
    if (this.#phase === 'reply') {
      if (token.length > 0) throw new Refusal('it answers the AP-REP with more than an empty token');
      return this.#offer(context);
    }
    return this.#conclude(context, token);
  }

  #accept(token: Uint8Array): SaslStep {
    const request = readApRequest(unframe(token));
    const { principal, replays, nowMs } = this.#options;
    if (request.service !== principal) {
      throw new Refusal(`its ticket is for ${request.service}, and this service is ${principal}`);
    }
    const now = nowMs();
    const ticket = readTicket(this.#decryptTicket(request.ticket));
    checkTicket(ticket, now);
    const { sessionKey } = ticket;
    const sessionType = typeOf(sessionKey);
    const { cipher, encryptionType } = request.authenticator;
    const plain =
      encryptionType === sessionKey.encryptionType
        ? sessionType.decrypt(sessionKey.bytes, Usage.authenticator, cipher)
        : null;
    if (plain === null) throw new Refusal('its authenticator was not made with the key of its ticket');
    const authenticator = readAuthenticator(plain);
    checkAuthenticator(authenticator, ticket, now);
    const known = createHash('sha256').update(cipher).digest('base64');
    if (!replays.add(known, now, authenticator.madeMs + 2 * CLOCK_SKEW_MS)) {
      throw new Refusal('its authenticator was used before: a replay');
    }
    const isMutual = (flagsOf(authenticator) & MUTUAL_FLAG) !== 0;
    const sealing = authenticator.subkey ?? sessionKey;
    // 31 bits: some clients take it for a number with a sign.
    const sequenceNumber = isMutual ? randomBytes(4).readUInt32BE() >>> 2 : authenticator.sequenceNumber;
    const context = { client: ticket.client, type: typeOf(sealing), key: sealing.bytes, sequenceNumber };
    this.#context = context;
    if (!isMutual) return this.#offer(context);
    this.#phase = 'reply';
    const part = writeApReplyPart(authenticator, sequenceNumber);
    const sealed = sessionType.encrypt(sessionKey.bytes, Usage.apReply, part);
    const reply = writeApReply({ encryptionType: sessionKey.encryptionType, cipher: sealed });
    return { kind: 'challenge', token: frame(TokenId.apReply, reply) };
  }

  #decryptTicket(ticket: EncryptedData): Buffer {
    const plain = this.#tryKeys(ticket, false) ?? this.#tryKeys(ticket, true);
    if (plain !== null) return plain;
    const { principal, keytab } = this.#options;
    const wanted = `type ${ticket.encryptionType} version ${ticket.version ?? 'unknown'}`;
    throw new Refusal(
      `no key of the keytab opens its ticket, which needs ${wanted} of ${principal}; the keytab has ${keytab(false).describe(principal) || 'none of it'}`,
    );
  }

  #tryKeys({ encryptionType, version, cipher }: EncryptedData, mustBeNew: boolean): Buffer | null {
    const type = ENCRYPTION_TYPES.get(encryptionType);
    if (type === undefined) return null;
    for (const key of this.#options.keytab(mustBeNew).find(this.#options.principal, encryptionType, version)) {
      const plain = key.length === type.keyBytes ? type.decrypt(key, Usage.ticket, cipher) : null;
      if (plain !== null) return plain;
    }
    return null;
  }

  #offer(context: Context): SaslStep {
    this.#phase = 'choice';
    const { type, key, sequenceNumber } = context;
    // 05 04, sent by the acceptor, filler; the length of the checksum and the rotation count for nothing in the checksum.
    const header = Buffer.alloc(WRAP_HEADER_BYTES);
    header.set([...TokenId.wrap, 0x01, 0xff]);
    header.writeUInt32BE(sequenceNumber, 12);
    const checksum = type.checksum(key, Usage.acceptorWrap, Buffer.concat([OFFER, header]));
    header.writeUInt16BE(checksum.length, 4);
    return { kind: 'challenge', token: Buffer.concat([header, OFFER, checksum]) };
  }

  #conclude(context: Context, token: Uint8Array): SaslStep {
    const choice = unwrap(context, Buffer.from(token));
    if (choice[0] !== NO_LAYER) throw new Refusal('it asks for a security layer, and none is offered');
    const authzid = choice.subarray(4).toString('utf8');
    if (authzid !== '' && authzid !== context.client) {
      throw new Refusal(`${context.client} asks to act as ${JSON.stringify(authzid)}, and nobody acts as another here`);
    }
    const identities = this.#options.authorize(context.client);
    if (typeof identities === 'string') throw new Refusal(identities);
    return { kind: 'success', token: null, identities };
  }
}

function checkTicket({ isInvalid, startsMs, endsMs, client }: Ticket, nowMs: number): void {
  if (isInvalid) throw new Refusal(`the ticket of ${client} is marked as invalid`);
  if (endsMs < nowMs - CLOCK_SKEW_MS) throw new Refusal(`the ticket of ${client} ended at ${formatTime(endsMs)}`);
  if (startsMs > nowMs + CLOCK_SKEW_MS) throw new Refusal(`the ticket of ${client} begins at ${formatTime(startsMs)}`);
}

function checkAuthenticator(authenticator: Authenticator, { client }: Ticket, nowMs: number): void {
  if (authenticator.client !== client) throw new Refusal(`the ticket of ${client} is used by ${authenticator.client}`);
  const skewMs = authenticator.madeMs - nowMs;
  if (Math.abs(skewMs) > CLOCK_SKEW_MS) {
    const seconds = Math.round(skewMs / 1000);
    throw new Refusal(`the clock of ${client} is ${seconds} s from this one, 300 s are allowed: set the clocks right`);
  }
  if ((authenticator.gssChecksum?.length ?? 0) < 24) throw new Refusal('its authenticator has no checksum of GSS-API');
}

/** GSS-API's flags stand behind the length and the hash of the channel bindings, lowest byte first. */
function flagsOf({ gssChecksum }: Authenticator): number {
  return gssChecksum === null ? 0 : Buffer.from(gssChecksum).readUInt32LE(20);
}

function typeOf({ encryptionType, bytes }: EncryptionKey): EncryptionType {
  const type = ENCRYPTION_TYPES.get(encryptionType);
  if (type === undefined || type.keyBytes !== bytes.length) {
    throw new Refusal(`its key is of encryption type ${encryptionType}; AES is demanded: 17, 18, 19 or 20`);
  }
  return type;
}

function unframe(token: Uint8Array): Uint8Array {
  const { contents } = readDer(token, 0x60);
  const mechanism = readDer(contents, DerTag.objectIdentifier);
  if (formatObjectIdentifier(mechanism) !== MECHANISM)
    throw new Refusal('its token is of another mechanism than Kerberos');
  const at = mechanism.bytes.length;
  const [first, second] = TokenId.apRequest;
  if (contents[at] !== first || contents[at + 1] !== second) throw new Refusal('its first token is no AP-REQ');
  return contents.subarray(at + 2);
}

function frame(id: readonly number[], message: Uint8Array): Uint8Array {
  return writeDer(0x60, objectIdentifier(MECHANISM), Uint8Array.from(id), message);
}

/** RFC 4121 §4.2: header, then text and checksum, rotated to the right by RRC bytes. */
function unwrap({ type, key }: Context, token: Buffer): Buffer {
  const isWrap = token.length >= WRAP_HEADER_BYTES && token[0] === TokenId.wrap[0] && token[1] === TokenId.wrap[1];
  if (!isWrap || token[3] !== 0xff) throw new Refusal('its last token is not wrapped');
  // Sent by an acceptor, sealed, with a subkey of the acceptor: none of it was agreed on.
  if (token[2] !== 0) throw new Refusal(`its last token has the flags ${token[2]}, expected 0`);
  const checksumBytes = token.readUInt16BE(4);
  const body = token.subarray(WRAP_HEADER_BYTES);
  const rotation = body.length === 0 ? 0 : token.readUInt16BE(6) % body.length;
  const straight = Buffer.concat([body.subarray(rotation), body.subarray(0, rotation)]);
  const end = straight.length - checksumBytes;
  if (checksumBytes !== type.checksumBytes || end < 4) throw new Refusal('its last token is too short');
  const header = Buffer.from(token.subarray(0, WRAP_HEADER_BYTES));
  header.fill(0, 4, 8);
  const text = straight.subarray(0, end);
  const expected = type.checksum(key, Usage.initiatorWrap, Buffer.concat([text, header]));
  if (!timingSafeEqual(expected, straight.subarray(end))) throw new Refusal('the checksum of its last token is wrong');
  return text;
}

function formatTime(ms: number): string {
  return new Date(ms).toISOString();
}
