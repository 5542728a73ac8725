import { createHash, randomBytes } from 'node:crypto';
import type { SaslExchange } from '../machine/ports.ts';
import { type Directives, onlyValue, parseDirectives, quote } from './digest-challenge.ts';

/** The credentials, and the names of realm and server. */
export interface DigestMd5Options {
  readonly username: string;
  readonly password: string;
  /** One of the server's realms. Default: the first one that it offers. */
  readonly realm?: string | undefined;
  /** Default `zookeeper`, as in every ZooKeeper server. */
  readonly service?: string | undefined;
  /** The server's name for itself. Default `zk-sasl-md5`, as in every ZooKeeper server. */
  readonly serverName?: string | undefined;
}

/**
 * SASL with user name and password, without sending the password (RFC 2831): for the option `sasl` of `connect`.
 *
 * The server also proves that it knows the password. Later messages are neither signed nor encrypted; TLS does that.
 *
 * @example
 * const client = await connect('zk1:2181', { sasl: digestMd5({ username: 'bob', password: 'builder' }) });
 */
export function digestMd5(options: DigestMd5Options): () => SaslExchange {
  return () => new DigestMd5Exchange(options, randomBytes(CNONCE_BYTES).toString('base64'));
}

/**
 * The client's half of one exchange.
 *
 *     client                                   server
 *     (empty token)                     ──►
 *                                       ◄──    realm, nonce, qop …         the challenge
 *     username, cnonce, response …      ──►                                shows that we know the password
 *                                       ◄──    rspauth                     shows that the server knows it
 */
export class DigestMd5Exchange implements SaslExchange {
  readonly #options: DigestMd5Options;
  readonly #cnonce: string;
  readonly #digestUri: string;
  #phase: 'challenge' | 'proof' | 'done' = 'challenge';
  /** The proof expected from the server. */
  #rspauth = '';

  /** @param cnonce unique to each exchange, and unpredictable: it keeps the server from choosing what is hashed */
  constructor(options: DigestMd5Options, cnonce: string) {
    this.#options = options;
    this.#cnonce = cnonce;
    this.#digestUri = `${options.service ?? 'zookeeper'}/${options.serverName ?? 'zk-sasl-md5'}`;
  }

  start(): Uint8Array {
    return new Uint8Array(0);
  }

  get whyRefused(): string {
    return this.#phase === 'challenge'
      ? 'it does not take passwords (DIGEST-MD5): log in by Kerberos, or give it users'
      : 'user or password is wrong, or the user has no rights there; its log says which';
  }

  respond(token: Uint8Array): Uint8Array | null {
    const directives = parseDirectives(token);
    switch (this.#phase) {
      case 'challenge':
        this.#phase = 'proof';
        return this.#answer(directives);
      case 'proof':
        this.#phase = 'done';
        this.#check(onlyValue(directives, 'rspauth'));
        return null;
      case 'done':
        throw new Error('the server continues with the SASL exchange after its end');
    }
  }

  #answer(challenge: Directives): Uint8Array {
    checkOffer(challenge);
    const nonce = onlyValue(challenge, 'nonce');
    if (nonce === null) throw new Error('the SASL challenge of the server has no nonce');
    const isUtf8 = onlyValue(challenge, 'charset') === 'utf-8';
    const { username, password } = this.#options;
    const realm = this.#chooseRealm((challenge.get('realm') ?? []).map((text) => (isUtf8 ? utf8(text) : text)));
    if (!isUtf8) for (const text of [username, password, realm]) checkLatin1(text);

    const user = md5(Buffer.concat([narrow(username), COLON, narrow(realm), COLON, narrow(password)]));
    // The nonce is returned unchanged, one byte per character.
    const session = `:${nonce}:${this.#cnonce}`;
    const a1 = md5(Buffer.concat([user, Buffer.from(session, 'latin1')])).toString('hex');
    const digest = (a2: string): string => {
      const hashed = md5(Buffer.from(a2, 'utf8')).toString('hex');
      return md5(Buffer.from(`${a1}:${nonce}:${NONCE_COUNT}:${this.#cnonce}:${QOP}:${hashed}`, 'latin1')).toString(
        'hex',
      );
    };
    this.#rspauth = digest(`:${this.#digestUri}`);
    const directives = [
      ...(isUtf8 ? ['charset=utf-8'] : []),
      `username=${quote(username)}`,
      ...(realm === '' ? [] : [`realm=${quote(realm)}`]),
      `nonce=${quote(isUtf8 ? utf8(nonce) : nonce)}`,
      `nc=${NONCE_COUNT}`,
      `cnonce=${quote(this.#cnonce)}`,
      `digest-uri=${quote(this.#digestUri)}`,
      `response=${digest(`AUTHENTICATE:${this.#digestUri}`)}`,
      `qop=${QOP}`,
    ];
    return new Uint8Array(Buffer.from(directives.join(','), isUtf8 ? 'utf8' : 'latin1'));
  }

  /** '' where the server has none and none was given. */
  #chooseRealm(offered: readonly string[]): string {
    const { realm } = this.#options;
    if (realm === undefined) return offered[0] ?? '';
    if (offered.length === 0 || offered.includes(realm)) return realm;
    throw new Error(`the server has no SASL realm "${realm}"; it has ${offered.map(quote).join(', ')}`);
  }

  #check(rspauth: string | null): void {
    if (rspauth === null) throw new Error('the server did not prove that it knows the password: no rspauth');
    if (rspauth.toLowerCase() !== this.#rspauth) {
      throw new Error('the server does not know the password: its rspauth is wrong');
    }
  }
}

/** Requires authentication without a security layer, with the only algorithm of RFC 2831. */
function checkOffer(challenge: Directives): void {
  const algorithm = onlyValue(challenge, 'algorithm');
  if (algorithm?.toLowerCase() !== 'md5-sess') {
    throw new Error(`the server asks for the SASL algorithm ${algorithm ?? '(none)'}, not for md5-sess`);
  }
  const offered = onlyValue(challenge, 'qop') ?? QOP;
  const isOffered = offered.split(',').some((qop) => qop.trim().toLowerCase() === QOP);
  if (!isOffered)
    throw new Error(`the server insists on the SASL protection "${offered}"; only "${QOP}" is known here`);
}

/**
 * The bytes of a text in a hash: ISO 8859-1 if possible, whatever the encoding on the wire, else UTF-8 (RFC 2831
 * §2.1.2.1).
 */
function narrow(text: string): Buffer {
  return Buffer.from(text, isLatin1(text) ? 'latin1' : 'utf8');
}

function isLatin1(text: string): boolean {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 0xff) return false;
  return true;
}

function checkLatin1(text: string): void {
  if (!isLatin1(text)) throw new Error('the server takes ISO 8859-1 only, and user name, password or realm is not');
}

/** Decodes bytes, given as characters, as UTF-8. */
function utf8(text: string): string {
  return Buffer.from(text, 'latin1').toString('utf8');
}

function md5(bytes: Uint8Array): Buffer {
  return createHash('md5').update(bytes).digest();
}

const COLON = Buffer.from(':');
const QOP = 'auth';
/** The nonce is used only once. Eight hexadecimal digits. */
const NONCE_COUNT = '00000001';
/** 128 bits of entropy; RFC 2831 requires at least 64. */
const CNONCE_BYTES = 16;
