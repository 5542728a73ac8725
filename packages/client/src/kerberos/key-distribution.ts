import { randomBytes } from 'node:crypto';
import { DerError } from '@meerkat/protocol/der';
import { writeApRequest } from './ap-messages.ts';
import { MicroClock, sealAuthenticator, typeOf } from './authenticator.ts';
import { ENCRYPTION_TYPES } from './encryption.ts';
import { type EncryptedData, encryptedData } from './fields.ts';
import { KeyUsage } from './gss-token.ts';
import {
  type KdcRefusal,
  type KdcReply,
  type KdcRequest,
  type PreAuthentication,
  PreAuthType,
  readReply,
  readReplyPart,
  writeRequest,
  writeRequestBody,
  writeTimestamp,
} from './kdc-messages.ts';
import { type AskKdc, askByTcp, askByUdp, type KdcAddress, parseKdc } from './kdc-transport.ts';
import { KerberosError } from './kerberos-error.ts';
import type { Keytab } from './keytab.ts';
import type { Krb5Config } from './krb5-config.ts';
import type { ServiceTicket } from './service-ticket.ts';

/** What a key distribution center is reached with. */
export interface KdcSurroundings {
  /** Milliseconds since 1970. */
  nowMs(): number;
  readonly askByTcp: AskKdc;
  readonly askByUdp: AskKdc;
  /** Host names and ports that the name service has for `_kerberos._tcp.REALM`. */
  lookUp(name: string): Promise<readonly { readonly name: string; readonly port: number }[]>;
}

export const KDC_SURROUNDINGS: KdcSurroundings = {
  nowMs: () => Date.now(),
  askByTcp,
  askByUdp,
  lookUp: async (name) => (await import('node:dns/promises')).resolveSrv(name),
};

/** Codes of KRB-ERROR (RFC 4120 §7.5.9) to which there is something to say. */
const Refusal = {
  unknownClient: 6,
  unknownService: 7,
  unsupportedType: 14,
  revoked: 18,
  keyExpired: 23,
  preAuthFailed: 24,
  preAuthRequired: 25,
  ticketExpired: 32,
  clockSkew: 37,
};
/** AES with SHA-2 comes last, as with MIT Kerberos: older centers do not know it. */
const ALL_TYPES = [18, 17, 20, 19];
/** Key distribution centers give less. */
const TICKET_LIFE_MS = 24 * 3_600_000;

/** The key distribution centers of one realm, as a client asks them for tickets. */
export class KeyDistribution {
  readonly realm: string;
  readonly #config: Krb5Config;
  readonly #surroundings: KdcSurroundings;
  readonly #clock: MicroClock;

  constructor(realm: string, config: Krb5Config, surroundings: KdcSurroundings) {
    this.realm = realm;
    this.#config = config;
    this.#surroundings = surroundings;
    this.#clock = new MicroClock(surroundings.nowMs);
  }

  /**
   * The ticket for other tickets, for the key of a principal (AS).
   *
   * @param origin of the keytab, for messages
   * @throws KerberosError
   */
  async login(client: string, keytab: Keytab, origin: string): Promise<ServiceTicket> {
    const types = ALL_TYPES.filter((type) => keytab.find(client, type, null).length > 0);
    if (types.length === 0) {
      throw new KerberosError(
        `the keytab ${origin} has no key of AES for ${client}; it has ${keytab.describe(client) || `keys of ${keytab.principals.join(', ') || 'nobody'}`}: give the principal that it is for, or write it with ktadd`,
      );
    }
    const request = this.#request(client, `krbtgt/${this.realm}@${this.realm}`, types);
    const body = writeRequestBody(request);
    let reply = await this.#exchange('as', body, []);
    if (reply.kind === 'refusal' && reply.code === Refusal.preAuthRequired) {
      const offered = reply.encryptionTypes.find((type) => types.includes(type)) ?? types[0] ?? 0;
      reply = await this.#exchange('as', body, [this.#proveTime(client, keytab, offered)]);
    }
    if (reply.kind === 'refusal') throw this.#explain(reply, client, request.service, origin);
    const { encryptionType, version, cipher } = reply.part;
    const type = ENCRYPTION_TYPES.get(encryptionType);
    for (const key of keytab.find(client, encryptionType, version)) {
      const plain = type?.decrypt(key, KeyUsage.asReply, cipher) ?? null;
      if (plain !== null) return this.#conclude(request, reply, plain);
    }
    throw new KerberosError(
      `no key of ${client} in the keytab ${origin} opens the answer of the key distribution center, which needs type ${encryptionType} version ${version ?? 'unknown'}; it has ${keytab.describe(client)}: write it again with ktadd`,
    );
  }

  /** A ticket for a service, for a ticket for tickets (TGS). @throws KerberosError */
  async ticketFor(service: string, granting: ServiceTicket): Promise<ServiceTicket> {
    const request = this.#request(null, service, ALL_TYPES);
    const body = writeRequestBody(request);
    const { sessionKey, ticket, client } = granting;
    const type = typeOf(sessionKey, `the ticket of ${client}`);
    const authenticator = sealAuthenticator(sessionKey, KeyUsage.tgsRequest, {
      client,
      checksum: {
        type: type.checksumNumber,
        bytes: type.checksum(sessionKey.bytes, KeyUsage.tgsRequestChecksum, body),
      },
      madeMicros: this.#clock.next(),
      subkey: null,
      sequenceNumber: 0,
    });
    const value = writeApRequest(ticket, authenticator, false);
    const reply = await this.#exchange('tgs', body, [{ type: PreAuthType.tgsRequest, value }]);
    if (reply.kind === 'refusal') throw this.#explain(reply, client, service, 'the ticket cache');
    const plain =
      reply.part.encryptionType === sessionKey.encryptionType
        ? type.decrypt(sessionKey.bytes, KeyUsage.tgsReply, reply.part.cipher)
        : null;
    if (plain === null) throw new KerberosError(`${this.#name} answers with a ticket that its own key does not open`);
    return this.#conclude(request, reply, plain);
  }

  #request(client: string | null, service: string, encryptionTypes: readonly number[]): KdcRequest {
    const nonce = randomBytes(4).readUInt32BE() >>> 2;
    return { client, service, encryptionTypes, nonce, untilMs: this.#surroundings.nowMs() + TICKET_LIFE_MS };
  }

  #proveTime(client: string, keytab: Keytab, encryptionType: number): PreAuthentication {
    const type = ENCRYPTION_TYPES.get(encryptionType);
    const [key] = keytab.find(client, encryptionType, null);
    if (type === undefined || key === undefined) throw new KerberosError(`there is no key of type ${encryptionType}`);
    const cipher = type.encrypt(key, KeyUsage.encryptedTimestamp, writeTimestamp(this.#clock.next()));
    const part: EncryptedData = { encryptionType, version: null, cipher };
    return { type: PreAuthType.encryptedTimestamp, value: encryptedData(part) };
  }

  #conclude(request: KdcRequest, reply: KdcReply, plain: Uint8Array): ServiceTicket {
    try {
      const part = readReplyPart(plain);
      if (part.nonce !== request.nonce || part.service !== request.service) {
        throw new KerberosError(`${this.#name} was asked for ${request.service} and answers with ${part.service}`);
      }
      const { sessionKey, startsMs, endsMs, service } = part;
      return { client: reply.client, service, ticket: reply.ticket, sessionKey, startsMs, endsMs };
    } catch (error) {
      throw this.#unreadable(error);
    }
  }

  /** Asks one center after the other, until one answers. */
  async #exchange(
    kind: 'as' | 'tgs',
    body: Uint8Array,
    proofs: readonly PreAuthentication[],
  ): Promise<KdcReply | KdcRefusal> {
    const message = writeRequest(kind, body, proofs);
    const failures: string[] = [];
    for (const kdc of await this.#addresses()) {
      try {
        return readReply(kind, await this.#ask(kdc, message));
      } catch (error) {
        if (error instanceof DerError) throw this.#unreadable(error);
        failures.push(`${kdc.host}:${kdc.port}: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
    throw new KerberosError(
      `no key distribution center of the realm ${this.realm} answers (${failures.join('; ')}): check kdc in krb5.conf and that they run`,
    );
  }

  /** By TCP; by UDP where nobody listens there. */
  async #ask(kdc: KdcAddress, message: Uint8Array): Promise<Uint8Array> {
    try {
      return await this.#surroundings.askByTcp(kdc, message);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ECONNREFUSED') throw error;
      return await this.#surroundings.askByUdp(kdc, message).catch(() => Promise.reject(error));
    }
  }

  async #addresses(): Promise<readonly KdcAddress[]> {
    const named = this.#config.kdcs.get(this.realm) ?? [];
    if (named.length > 0) return named.map(parseKdc);
    const missing = `krb5.conf names no kdc of the realm ${this.realm}`;
    if (!this.#config.looksUpKdcs) throw new KerberosError(`${missing}: add it below [realms], or set KRB5_CONFIG`);
    try {
      const found = await this.#surroundings.lookUp(`_kerberos._tcp.${this.realm}`);
      return found.map(({ name, port }) => ({ host: name, port }));
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      throw new KerberosError(
        `${missing}, and the name service has none (${code ?? message}): add it below [realms], or set KRB5_CONFIG`,
      );
    }
  }

  get #name(): string {
    return `the key distribution center of ${this.realm}`;
  }

  #explain({ code, serverMs, text }: KdcRefusal, client: string, service: string, origin: string): KerberosError {
    const said = `error ${code}${text === '' ? '' : `, ${text}`}`;
    switch (code) {
      case Refusal.unknownClient:
        return new KerberosError(`${this.#name} does not know ${client} (${said}): check the principal and its realm`);
      case Refusal.unknownService:
        return new KerberosError(
          `${this.#name} does not know the service ${service} (${said}): use the host name that its principal has, or name the principal`,
        );
      case Refusal.unsupportedType:
        return new KerberosError(`${this.#name} has no key of AES for ${client} (${said}): create one`);
      case Refusal.revoked:
      case Refusal.keyExpired:
        return new KerberosError(`${this.#name} has locked ${client}, or its password has expired (${said})`);
      case Refusal.preAuthFailed:
        return new KerberosError(
          `${this.#name} has another key of ${client} than ${origin} (${said}): its password or key was changed since; write the keytab again with ktadd`,
        );
      case Refusal.ticketExpired:
        return new KerberosError(`the ticket of ${client} in ${origin} has ended (${said}): run kinit`);
      case Refusal.clockSkew: {
        const seconds = Math.round((this.#surroundings.nowMs() - serverMs) / 1000);
        return new KerberosError(
          `the clock of this machine is ${Math.abs(seconds)} s ${seconds < 0 ? 'behind' : 'ahead of'} that of ${this.#name} (${said}): synchronize the clocks`,
        );
      }
      default:
        return new KerberosError(`${this.#name} gives ${client} no ticket for ${service}: ${said}`);
    }
  }

  #unreadable(error: unknown): unknown {
    if (!(error instanceof DerError)) return error;
    return new KerberosError(`${this.#name} answers with what is no message of Kerberos: ${error.message}`);
  }
}
