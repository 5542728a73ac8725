import { randomBytes, timingSafeEqual } from 'node:crypto';
import type { Identity, SaslConversation, SaslStep } from '@meerkat/core';
import { computeDigestProofs, QOP } from './digest-md5-hash.ts';
import { type Directives, parseDirectives, quote } from './directives.ts';
import { DIGEST_MD5, describeBeginning, mechanismOf } from './mechanism.ts';
import type { Passwords } from './passwords.ts';

/** What a server says about itself, and whom it knows. */
export interface DigestMd5ServerOptions {
  /** `zookeeper` for clients, `zookeeper-quorum` for servers. */
  readonly service: string;
  /** Realm, and host of the digest-uri. */
  readonly serverName: string;
  readonly users: Passwords;
  /** The identities of a user, or why it has none. Called with the authenticated name. */
  authorize(username: string): readonly Identity[] | string;
}

/**
 * The server's half of one DIGEST-MD5 exchange (RFC 2831), as Java's SASL server does it.
 *
 *     client                                   server
 *     (empty token)                     ──►
 *                                       ◄──    realm, nonce, charset, algorithm
 *     username, cnonce, response …      ──►
 *                                       ◄──    rspauth
 *
 * Everything that is known of the client is in this object, which lives as long as its connection (ZOOKEEPER-4839). Who the
 * client is follows from the name that it has proved alone: an authzid is either that name or refused.
 */
export class DigestMd5Server implements SaslConversation {
  readonly #options: DigestMd5ServerOptions;
  readonly #nonce: string;
  #isChallenged = false;
  /** What is wrong if the response cannot be read; null when only the response is. */
  #mechanismFault: string | null = null;

  /** @param nonce new for each exchange */
  constructor(options: DigestMd5ServerOptions, nonce: string = randomBytes(NONCE_BYTES).toString('base64')) {
    this.#options = options;
    this.#nonce = nonce;
  }

  step(token: Uint8Array): SaslStep {
    if (token.length > TOKEN_BYTES_MAX)
      return failure(`its token takes ${token.length} bytes, ${TOKEN_BYTES_MAX} at most`);
    if (this.#isChallenged) return this.#check(token);
    this.#isChallenged = true;
    const realm = quote(this.#options.serverName);
    const challenge = Buffer.from(`realm=${realm},nonce=${quote(this.#nonce)},charset=utf-8,algorithm=md5-sess`);
    const mechanism = mechanismOf(token);
    if (mechanism === DIGEST_MD5) return { kind: 'challenge', token: challenge };
    const warning = `${describeBeginning(mechanism)}, and this server takes ${DIGEST_MD5} alone: let it log in by one, or give this server a keytab in place of users`;
    // As with Apache's server the first token decides nothing; a client of another mechanism reads what is wrong from the challenge.
    if (mechanism !== null) return { kind: 'challenge', token: challenge, warning };
    this.#mechanismFault = warning;
    return { kind: 'challenge', token: challenge };
  }

  #check(token: Uint8Array): SaslStep {
    const directives = parseDirectives(token);
    if (directives === null) return failure(this.#mechanismFault ?? 'its response is no list of directives');
    const fault = this.#faultOf(directives);
    if (fault !== null) return failure(this.#mechanismFault ?? fault);
    const username = textOf(directives, 'username') ?? '';
    const password = this.#options.users.of(username);
    const proofs = computeDigestProofs({
      username,
      realm: this.#options.serverName,
      // Something is hashed for an unknown user, too: the response time must not reveal which users exist.
      password: password ?? UNKNOWN_PASSWORD,
      nonce: Buffer.from(this.#nonce),
      cnonce: directives.get('cnonce') ?? NOTHING,
      authzid: directives.get('authzid') ?? null,
      digestUri: textOf(directives, 'digest-uri') ?? '',
    });
    const isProved = isSame(directives.get('response') ?? NOTHING, Buffer.from(proofs.client));
    if (password === null) return failure(`there is no user ${shown(username)}`);
    if (!isProved) return failure(`the password of ${shown(username)} is wrong`);
    const authzid = textOf(directives, 'authzid');
    if (authzid !== null && authzid !== '' && authzid !== username) {
      return failure(`${shown(username)} asks to act as ${shown(authzid)}, which is not supported here`);
    }
    const identities = this.#options.authorize(username);
    if (typeof identities === 'string') return failure(identities);
    return { kind: 'success', token: Buffer.from(`rspauth=${proofs.server}`), identities };
  }

  /** What is wrong with a response before its proof is looked at; null when nothing is. */
  #faultOf(directives: Directives): string | null {
    const { service, serverName } = this.#options;
    const charset = textOf(directives, 'charset');
    if (charset !== null && charset !== 'utf-8') return 'it has a charset other than utf-8';
    const buffer = textOf(directives, 'maxbuf');
    if (buffer !== null && !/^[+-]?\d{1,10}$/.test(buffer)) return 'its maxbuf is no number';
    if (!directives.has('username')) return 'it names no user';
    if (textOf(directives, 'realm') !== serverName) return `its realm is not ${serverName}`;
    if (!isSame(directives.get('nonce') ?? NOTHING, Buffer.from(this.#nonce)))
      return 'its nonce is not the one it was sent';
    if (!directives.has('cnonce')) return 'it has no cnonce';
    if ((textOf(directives, 'qop') ?? QOP) !== QOP) return `it asks for a qop other than ${QOP}`;
    const uri = `${service}/${serverName}`;
    if (textOf(directives, 'digest-uri')?.toLowerCase() !== uri) return `its digest-uri is not ${uri}`;
    return directives.has('response') ? null : 'it has no response';
  }
}

function failure(reason: string): SaslStep {
  return { kind: 'failure', reason };
}

function textOf(directives: Directives, name: string): string | null {
  return directives.get(name)?.toString('utf8') ?? null;
}

function isSame(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}

/** A name for the log. It comes from the client. */
function shown(name: string): string {
  return JSON.stringify(name.length > NAME_CHARS_MAX ? `${name.slice(0, NAME_CHARS_MAX)}…` : name);
}

const NOTHING = Buffer.alloc(0);
const NAME_CHARS_MAX = 100;
const UNKNOWN_PASSWORD = randomBytes(16).toString('hex');
/** As Java's server has it: 40 characters of base64. */
const NONCE_BYTES = 30;
/** As Java's server has it. */
const TOKEN_BYTES_MAX = 4096;
