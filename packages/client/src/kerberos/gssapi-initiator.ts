import { randomBytes } from 'node:crypto';
import { DerError } from '@meerkat/protocol/der';
import { GSS_CHECKSUM, readApReply, readApReplyPart, writeApRequest } from './ap-messages.ts';
import { MicroClock, sealAuthenticator, typeOf } from './authenticator.ts';
import { frame, KeyUsage, TokenId, unframe, unwrap, type WrapKey, wrap } from './gss-token.ts';
import { KerberosError } from './kerberos-error.ts';
import type { ServiceTicket } from './service-ticket.ts';

/** Flags of GSS-API: mutual authentication, detection of replays and of wrong order, integrity. */
const GSS_FLAGS = 0x02 | 0x04 | 0x08 | 0x20;
const NO_LAYER = 1;
const EMPTY = new Uint8Array(0);
const CLOCK = new MicroClock(() => Date.now());

/**
 * The initiator of SASL GSSAPI with Kerberos (RFC 4752, 4121, 4120). It always requires mutual authentication.
 *
 *     client                                      server
 *     AP-REQ: ticket, authenticator        ──►
 *                                          ◄──    AP-REP: it could read them
 *     empty token                          ──►
 *                                          ◄──    wrapped: its layers
 *     wrapped: no layer, own name          ──►
 */
export class GssapiInitiator {
  readonly #ticket: ServiceTicket;
  readonly #clock: MicroClock;
  #phase: 'reply' | 'offer' | 'done' = 'reply';
  #madeMicros = 0;
  #sequenceNumber = 0;
  #wrapKey: WrapKey | null = null;

  constructor(ticket: ServiceTicket, clock: MicroClock = CLOCK) {
    this.#ticket = ticket;
    this.#clock = clock;
  }

  /** The last token was created: the server only confirms, without a token. */
  get isComplete(): boolean {
    return this.#phase === 'done';
  }

  /** @throws KerberosError */
  start(): Uint8Array {
    const { sessionKey, client, ticket, service } = this.#ticket;
    const type = typeOf(sessionKey, `the ticket for ${service}`);
    const subkey = randomBytes(type.keyBytes);
    this.#wrapKey = { type, key: subkey, isOfAcceptor: false };
    this.#madeMicros = this.#clock.next();
    this.#sequenceNumber = randomBytes(4).readUInt32BE() >>> 2;
    // The length of the hash of channel bindings, the hash (all zeros), and the flags, lowest byte first.
    const bytes = Buffer.alloc(24);
    bytes.writeUInt32LE(16);
    bytes.writeUInt32LE(GSS_FLAGS, 20);
    const authenticator = sealAuthenticator(sessionKey, KeyUsage.authenticator, {
      client,
      checksum: { type: GSS_CHECKSUM, bytes },
      madeMicros: this.#madeMicros,
      subkey: { encryptionType: sessionKey.encryptionType, bytes: subkey },
      sequenceNumber: this.#sequenceNumber,
    });
    return frame(TokenId.apRequest, writeApRequest(ticket, authenticator, true));
  }

  /** The response to a token of the server. @throws KerberosError when it is not acceptable */
  step(token: Uint8Array): Uint8Array {
    switch (this.#phase) {
      case 'reply':
        this.#phase = 'offer';
        this.#checkReply(token);
        return EMPTY;
      case 'offer':
        this.#phase = 'done';
        return this.#choose(token);
      case 'done':
        throw new KerberosError('the server continues with the SASL exchange after its end');
    }
  }

  #checkReply(token: Uint8Array): void {
    const { sessionKey, service } = this.#ticket;
    const wrong = (what: string): KerberosError =>
      new KerberosError(`the server does not prove that it is ${service}: ${what}`);
    if (Buffer.from(token).includes('algorithm=md5-sess')) {
      throw new KerberosError(
        `the server takes passwords (DIGEST-MD5), not Kerberos: log in by one, or have a keytab there`,
      );
    }
    try {
      const reply = unframe(TokenId.apReply, token);
      if (reply === null) throw wrong('its first token is no AP-REP');
      const { encryptionType, cipher } = readApReply(reply);
      const type = typeOf(sessionKey, `the ticket for ${service}`);
      const isSame = encryptionType === sessionKey.encryptionType;
      const plain = isSame ? type.decrypt(sessionKey.bytes, KeyUsage.apReply, cipher) : null;
      if (plain === null) throw wrong('it does not know the key of the ticket');
      const { madeMicros, subkey } = readApReplyPart(plain);
      if (madeMicros !== this.#madeMicros) throw wrong('it answers another request');
      if (subkey === null) return;
      this.#wrapKey = { type: typeOf(subkey, service), key: subkey.bytes, isOfAcceptor: true };
    } catch (error) {
      throw error instanceof DerError ? wrong(`its token cannot be read: ${error.message}`) : error;
    }
  }

  #choose(token: Uint8Array): Uint8Array {
    const { service, client } = this.#ticket;
    const wrapKey = this.#wrapKey;
    if (wrapKey === null) throw new KerberosError('the exchange has not begun');
    const offer = unwrap('acceptor', wrapKey, token);
    if (typeof offer === 'string') throw new KerberosError(`the token of ${service} with its layers ${offer}`);
    if (((offer[0] ?? 0) & NO_LAYER) === 0) {
      throw new KerberosError(
        `${service} demands that SASL signs or encrypts each message, which ZooKeeper does not do: use TLS, and sasl.qop=auth there`,
      );
    }
    return wrap(
      'initiator',
      wrapKey,
      this.#sequenceNumber,
      Buffer.concat([Uint8Array.of(NO_LAYER, 0, 0, 0), Buffer.from(client)]),
    );
  }
}
