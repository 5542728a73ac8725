import { createHash, randomBytes } from 'node:crypto';
import {
  type Authenticator,
  ENCRYPTION_TYPES,
  type EncryptedData,
  type EncryptionKey,
  type EncryptionType,
  frame,
  type Keytab,
  KeyUsage,
  readApRequest,
  readAuthenticator,
  readTicket,
  type Ticket,
  TokenId,
  unframe,
  unwrap,
  type WrapKey,
  wrap,
  writeApReply,
  writeApReplyPart,
} from '@meerkat/client/kerberos';
import type { Identity, SaslConversation, SaslStep } from '@meerkat/core';
import { DerError } from '@meerkat/protocol/der';
import { describeBeginning, KERBEROS, mechanismOf } from '../mechanism.ts';
import type { ReplayCache } from './replay-cache.ts';

export interface GssapiServerOptions {
  /** Of this service, with its realm: `zookeeper/host@REALM`. */
  readonly principal: string;
  /** The keys; asked for with each exchange, so that they may be renewed. */
  keytab(mustBeNew: boolean): Keytab;
  /** Why these are not the keys that the file has now; null when they are. */
  keytabFault(): string | null;
  readonly replays: ReplayCache;
  /** Milliseconds since 1970. */
  nowMs(): number;
  /** The identities of a principal, or why it has none. */
  authorize(principal: string): readonly Identity[] | string;
}

const CLOCK_SKEW_MS = 300_000;
const MUTUAL_FLAG = 2;
const NO_LAYER = 1;
/** No layer, and messages of 64 KiB, as Java's server says it. */
const OFFER = Uint8Array.of(NO_LAYER, 1, 0, 0);

/** What is sealed with after the ticket was accepted. */
interface Context extends WrapKey {
  readonly client: string;
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
    const mechanism = mechanismOf(token);
    if (mechanism !== KERBEROS) {
      throw new Refusal(
        `${describeBeginning(mechanism)}, and this server takes ${KERBEROS} alone: let it log in by that, or give this server users in place of a keytab`,
      );
    }
    const message = unframe(TokenId.apRequest, token);
    if (message === null) throw new Refusal('its first token is no AP-REQ of Kerberos');
    const request = readApRequest(message);
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
        ? sessionType.decrypt(sessionKey.bytes, KeyUsage.authenticator, cipher)
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
    const context = {
      client: ticket.client,
      type: typeOf(sealing),
      key: sealing.bytes,
      isOfAcceptor: false,
      sequenceNumber,
    };
    this.#context = context;
    if (!isMutual) return this.#offer(context);
    this.#phase = 'reply';
    const part = writeApReplyPart(authenticator, sequenceNumber);
    const sealed = sessionType.encrypt(sessionKey.bytes, KeyUsage.apReply, part);
    const reply = writeApReply({ encryptionType: sessionKey.encryptionType, version: null, cipher: sealed });
    return { kind: 'challenge', token: frame(TokenId.apReply, reply) };
  }

  #decryptTicket(ticket: EncryptedData): Buffer {
    const plain = this.#tryKeys(ticket, false) ?? this.#tryKeys(ticket, true);
    if (plain !== null) return plain;
    const { principal, keytab, keytabFault } = this.#options;
    const wanted = `type ${ticket.encryptionType} version ${ticket.version ?? 'unknown'}`;
    const held = keytab(false).describe(principal) || 'none of it';
    const fault = keytabFault();
    throw new Refusal(
      `no key of the keytab opens its ticket, which needs ${wanted} of ${principal}; the keytab ${fault === null ? 'has' : 'had'} ${held}${fault === null ? '' : `, and now ${fault}`}`,
    );
  }

  #tryKeys({ encryptionType, version, cipher }: EncryptedData, mustBeNew: boolean): Buffer | null {
    const type = ENCRYPTION_TYPES.get(encryptionType);
    if (type === undefined) return null;
    for (const key of this.#options.keytab(mustBeNew).find(this.#options.principal, encryptionType, version)) {
      const plain = key.length === type.keyBytes ? type.decrypt(key, KeyUsage.ticket, cipher) : null;
      if (plain !== null) return plain;
    }
    return null;
  }

  #offer(context: Context): SaslStep {
    this.#phase = 'choice';
    return { kind: 'challenge', token: wrap('acceptor', context, context.sequenceNumber, OFFER) };
  }

  #conclude(context: Context, token: Uint8Array): SaslStep {
    const choice = unwrap('initiator', context, token);
    if (typeof choice === 'string') throw new Refusal(`its last token ${choice}`);
    if (choice[0] !== NO_LAYER) throw new Refusal('it asks for a security layer, and none is offered');
    const authzid = Buffer.from(choice.subarray(4)).toString('utf8');
    if (authzid !== '' && authzid !== context.client) {
      throw new Refusal(`${context.client} asks to act as ${JSON.stringify(authzid)}, which is not supported here`);
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

function formatTime(ms: number): string {
  return new Date(ms).toISOString();
}
