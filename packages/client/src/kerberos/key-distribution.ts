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

/** The environment of requests to key distribution centers. */
export interface KdcSurroundings {
  /** Milliseconds since 1970. */
  nowMs(): number;
  readonly askByTcp: AskKdc;
  readonly askByUdp: AskKdc;
  /** The SRV records of `_kerberos._tcp.REALM`: those of the lowest priority are tried first. */
  lookUp(name: string): Promise<readonly KdcRecord[]>;
}

export interface KdcRecord {
  readonly name: string;
  readonly port: number;
  readonly priority: number;
}

export const KDC_SURROUNDINGS: KdcSurroundings = {
  nowMs: () => Date.now(),
  askByTcp,
  askByUdp,
  lookUp: async (name) => (await import('node:dns/promises')).resolveSrv(name),
};

/** Codes of KRB-ERROR (RFC 4120 §7.5.9) that are handled specially. */
const Refusal = {
  unknownClient: 6,
  unknownService: 7,
  unsupportedType: 14,
  revoked: 18,
  keyExpired: 23,
  preAuthFailed: 24,
  preAuthRequired: 25,
  unavailable: 29,
  ticketExpired: 32,
  clockSkew: 37,
  wrongRealm: 68,
};
/** AES with SHA-2 comes last, as with MIT Kerberos: older centers do not support it. */
const ALL_TYPES = [18, 17, 20, 19];
/** Key distribution centers grant less. */
const TICKET_LIFE_MS = 24 * 3_600_000;

/** The key distribution centers of one realm, for a client. */
export class KeyDistribution {
  readonly realm: string;
  readonly #config: Krb5Config;
  readonly #surroundings: KdcSurroundings;
  readonly #clock: MicroClock;
  /** The center that answered last: the next request starts with it. */
  #answering: KdcAddress | null = null;

  constructor(realm: string, config: Krb5Config, surroundings: KdcSurroundings) {
    this.realm = realm;
    this.#config = config;
    this.#surroundings = surroundings;
    this.#clock = new MicroClock(surroundings.nowMs);
  }

  /**
   * The ticket-granting ticket for the key of a principal (AS).
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
      const cookie = reply.cookie === null ? [] : [{ type: PreAuthType.cookie, value: reply.cookie }];
      reply = await this.#exchange('as', body, [this.#proveTime(client, keytab, offered), ...cookie]);
    }
    if (reply.kind === 'refusal') throw this.#explain(reply, client, request.service, origin);
    const { encryptionType, version, cipher } = reply.part;
    const type = ENCRYPTION_TYPES.get(encryptionType);
    for (const key of keytab.find(client, encryptionType, version)) {
      const plain = type?.decrypt(key, KeyUsage.asReply, cipher) ?? null;
      if (plain !== null) return this.#conclude(request, client, reply, plain);
    }
    throw new KerberosError(
      `no key of ${client} in the keytab ${origin} opens the answer of the key distribution center, which is for one of type ${encryptionType}${version === null ? '' : ` version ${version}`}; it has ${keytab.describe(client)}: write it again with ktadd`,
    );
  }

  /** A service ticket for a ticket-granting ticket (TGS). @throws KerberosError */
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
    return this.#conclude(request, client, reply, plain);
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

  /** The ticket of a reply, after checking that it answers this request, for this client. */
  #conclude(request: KdcRequest, client: string, reply: KdcReply, plain: Uint8Array): ServiceTicket {
    try {
      const part = readReplyPart(plain);
      const { sessionKey, startsMs, endsMs, service } = part;
      if (part.nonce !== request.nonce) throw new KerberosError(`${this.#name} sends the answer to another request`);
      if (service !== request.service || reply.client !== client) {
        throw new KerberosError(
          `${this.#name} was asked by ${client} for ${request.service} and answers with a ticket of ${reply.client} for ${service}`,
        );
      }
      return { client, service, ticket: reply.ticket, sessionKey, startsMs, endsMs };
    } catch (error) {
      throw this.#unreadable(error);
    }
  }

  /** Asks one center after the other, until one sends a valid message and is not unavailable. */
  async #exchange(
    kind: 'as' | 'tgs',
    body: Uint8Array,
    proofs: readonly PreAuthentication[],
  ): Promise<KdcReply | KdcRefusal> {
    const message = writeRequest(kind, body, proofs);
    const failures: string[] = [];
    for (const kdc of await this.#addresses()) {
      try {
        const reply = readReply(kind, await this.#ask(kdc, message));
        if (reply.kind === 'reply' || reply.code !== Refusal.unavailable) {
          this.#answering = kdc;
          return reply;
        }
        failures.push(`${formatKdc(kdc)}: it is out of service, error ${reply.code}`);
      } catch (error) {
        const { message } = error as Error;
        const what = error instanceof DerError ? `it answers with what is no message of Kerberos: ${message}` : message;
        failures.push(`${formatKdc(kdc)}: ${what}`);
      }
    }
    throw new KerberosError(
      `no key distribution center of the realm ${this.realm} answers (${failures.join('; ')}): check kdc in ${this.#config.path} and that they run`,
    );
  }

  /** By TCP; by UDP where no server listens. */
  async #ask(kdc: KdcAddress, message: Uint8Array): Promise<Uint8Array> {
    try {
      return await this.#surroundings.askByTcp(kdc, message);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ECONNREFUSED') throw error;
      return await this.#surroundings.askByUdp(kdc, message).catch(() => Promise.reject(error));
    }
  }

  async #addresses(): Promise<readonly KdcAddress[]> {
    const found = await this.#findAddresses();
    const answering = this.#answering;
    return answering === null ? found : [answering, ...found.filter((kdc) => formatKdc(kdc) !== formatKdc(answering))];
  }

  async #findAddresses(): Promise<readonly KdcAddress[]> {
    const { kdcs, looksUpKdcs, path } = this.#config;
    const named = kdcs.get(this.realm) ?? [];
    if (named.length > 0) return named.map(parseKdc);
    const missing = `${path} names no kdc of the realm ${this.realm}`;
    const todo = 'add it below [realms], or set KRB5_CONFIG';
    if (!looksUpKdcs) throw new KerberosError(`${missing}: ${todo}`);
    let why = 'no record';
    try {
      const records = await this.#surroundings.lookUp(`_kerberos._tcp.${this.realm}`);
      // A record without a name says that there is no center.
      const found = records.filter(({ name }) => name !== '').sort((a, b) => a.priority - b.priority);
      if (found.length > 0) return found.map(({ name, port }) => ({ host: name, port }));
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      why = code ?? message;
    }
    throw new KerberosError(`${missing}, and the name service has none (${why}): ${todo}`);
  }

  get #name(): string {
    return `the key distribution center of ${this.realm}`;
  }

  #explain({ code, serverMs, text }: KdcRefusal, client: string, service: string, origin: string): KerberosError {
    const said = `error ${code}${text === '' ? '' : `, ${quoteText(text)}`}`;
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
      case Refusal.wrongRealm:
        return new KerberosError(
          `${this.#name} does not serve the realm of ${client} (${said}): correct kdc in ${this.#config.path}`,
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

function formatKdc({ host, port }: KdcAddress): string {
  return `${host}:${port}`;
}

/** The text of a refusal is not authenticated: it is shortened to one line. */
function quoteText(text: string): string {
  return text.slice(0, TEXT_CHARACTERS_MAX).replaceAll(/\p{Cc}+/gu, ' ');
}

const TEXT_CHARACTERS_MAX = 200;
