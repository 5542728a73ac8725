import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';
import { DerTag, objectIdentifier, sequence, unsigned, utf8String, writeDer } from '@meerkat/protocol/der';
import { parseIp } from '../auth/ip-address.ts';

export interface CertificateOptions {
  /** Names beside the common name: `DNS:zk1.example.org`, `IP:127.0.0.1`, `URI:…`, `email:…`. */
  readonly names?: readonly string[];
  /** Further parts of the subject, before the common name: `O`, `OU`, `C` by name, others by number. */
  readonly subject?: Readonly<Record<string, string>>;
  /** Milliseconds since 1970; yesterday, and in a year, by default. */
  readonly validFromMs?: number;
  readonly validToMs?: number;
  readonly keyType?: KeyType;
}

export type KeyType = 'ec' | 'rsa';

/** A certificate with its key, in PEM. */
export interface IssuedCertificate {
  readonly certificate: string;
  readonly key: string;
  /** Key and certificate in one text: what `ssl.keyStore.location` names. */
  readonly keyStore: string;
  /** Hexadecimal; for `revoke`. */
  readonly serial: string;
}

/**
 * Makes certificates for tests and for ensembles on one's own machine; its key is nowhere but in memory.
 *
 *     Certificate := SEQUENCE { body, algorithm, BIT STRING signature }
 *     body := SEQUENCE { [0] version, serial, algorithm, issuer, validity, subject, key, [3] extensions }
 *
 * @example
 * const authority = new CertificateAuthority();
 * writeFileSync('ca.pem', authority.certificate);
 * writeFileSync('server.pem', authority.issue('zk1', { names: ['DNS:zk1.example.org'] }).keyStore);
 */
export class CertificateAuthority {
  /** What others trust, in PEM. */
  readonly certificate: string;
  readonly #key: KeyObject;
  readonly #subject: Uint8Array;
  readonly #keyId: Uint8Array;

  constructor(name = 'Meerkat test authority', options: Omit<CertificateOptions, 'names'> = {}) {
    const { privateKey, publicKey } = makeKeyPair(options.keyType ?? 'ec');
    this.#key = privateKey;
    this.#subject = writeName(name, options.subject ?? {});
    this.#keyId = keyIdOf(publicKey);
    const extensions = [
      writeExtension(OID.basicConstraints, true, sequence(writeDer(BOOLEAN, Uint8Array.of(0xff)))),
      // keyCertSign, cRLSign
      writeExtension(OID.keyUsage, true, writeDer(DerTag.bitString, Uint8Array.of(1, 0x06))),
    ];
    this.certificate = this.#certify(this.#subject, publicKey, extensions, options).pem;
  }

  /** @param commonName the last part of the subject; '' for none */
  issue(commonName: string, options: CertificateOptions = {}): IssuedCertificate {
    const { privateKey, publicKey } = makeKeyPair(options.keyType ?? 'ec');
    const { names = [], subject = {} } = options;
    const extensions = [
      writeExtension(OID.basicConstraints, true, sequence()),
      // digitalSignature, and keyEncipherment for RSA without Diffie-Hellman
      writeExtension(OID.keyUsage, true, writeDer(DerTag.bitString, Uint8Array.of(5, 0xa0))),
      writeExtension(
        OID.extendedKeyUsage,
        false,
        sequence(objectIdentifier(OID.serverAuth), objectIdentifier(OID.clientAuth)),
      ),
      ...(names.length === 0
        ? []
        : [writeExtension(OID.subjectAltName, false, sequence(...names.map(writeAlternativeName)))]),
    ];
    const { pem, serial } = this.#certify(writeName(commonName, subject), publicKey, extensions, options);
    const key = privateKey.export({ type: 'pkcs8', format: 'pem' }) as string;
    return { certificate: pem, key, keyStore: key + pem, serial };
  }

  /** A list of revoked certificates, in PEM; valid for a year. */
  revoke(serials: readonly string[], validToMs: number = Date.now() + YEAR_MS): string {
    const revoked = serials.map((serial) => sequence(unsigned(Buffer.from(serial, 'hex')), time(Date.now() - HOUR_MS)));
    const algorithm = algorithmOf(this.#key);
    const body = sequence(
      unsigned(Uint8Array.of(1)),
      algorithm,
      this.#subject,
      time(Date.now() - HOUR_MS),
      time(validToMs),
      ...(revoked.length === 0 ? [] : [sequence(...revoked)]),
    );
    return formatPem('X509 CRL', this.#sign(body, algorithm));
  }

  #certify(
    subject: Uint8Array,
    publicKey: KeyObject,
    extensions: readonly Uint8Array[],
    { validFromMs = Date.now() - DAY_MS, validToMs = Date.now() + YEAR_MS }: CertificateOptions,
  ): { readonly pem: string; readonly serial: string } {
    // Not negative, and not shortened.
    const serial = randomBytes(16);
    serial[0] = (serial[0]! & 0x7f) | 0x40;
    const algorithm = algorithmOf(this.#key);
    const identifiers = [
      writeExtension(OID.subjectKeyIdentifier, false, writeDer(DerTag.octetString, keyIdOf(publicKey))),
      writeExtension(OID.authorityKeyIdentifier, false, sequence(writeDer(0x80, this.#keyId))),
    ];
    const body = sequence(
      writeDer(0xa0, unsigned(Uint8Array.of(2))),
      unsigned(serial),
      algorithm,
      this.#subject,
      sequence(time(validFromMs), time(validToMs)),
      subject,
      publicKey.export({ type: 'spki', format: 'der' }),
      writeDer(0xa3, sequence(...extensions, ...identifiers)),
    );
    return { pem: formatPem('CERTIFICATE', this.#sign(body, algorithm)), serial: serial.toString('hex') };
  }

  #sign(body: Uint8Array, algorithm: Uint8Array): Uint8Array {
    const signature = sign('sha256', body, this.#key);
    return sequence(body, algorithm, writeDer(DerTag.bitString, Uint8Array.of(0), signature));
  }
}

const OID = {
  ecdsaWithSha256: '1.2.840.10045.4.3.2',
  sha256WithRsa: '1.2.840.113549.1.1.11',
  subjectKeyIdentifier: '2.5.29.14',
  keyUsage: '2.5.29.15',
  subjectAltName: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  authorityKeyIdentifier: '2.5.29.35',
  extendedKeyUsage: '2.5.29.37',
  serverAuth: '1.3.6.1.5.5.7.3.1',
  clientAuth: '1.3.6.1.5.5.7.3.2',
} as const;

const ATTRIBUTES: Readonly<Record<string, string>> = {
  CN: '2.5.4.3',
  C: '2.5.4.6',
  L: '2.5.4.7',
  ST: '2.5.4.8',
  O: '2.5.4.10',
  OU: '2.5.4.11',
};

const BOOLEAN = 0x01;
const NULL = 0x05;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const YEAR_MS = 365 * DAY_MS;

function makeKeyPair(type: KeyType): { readonly privateKey: KeyObject; readonly publicKey: KeyObject } {
  return type === 'ec'
    ? generateKeyPairSync('ec', { namedCurve: 'P-256' })
    : generateKeyPairSync('rsa', { modulusLength: 2048 });
}

function algorithmOf(key: KeyObject): Uint8Array {
  return key.asymmetricKeyType === 'rsa'
    ? sequence(objectIdentifier(OID.sha256WithRsa), writeDer(NULL))
    : sequence(objectIdentifier(OID.ecdsaWithSha256));
}

function keyIdOf(publicKey: KeyObject): Uint8Array {
  return createHash('sha1')
    .update(publicKey.export({ type: 'spki', format: 'der' }))
    .digest();
}

function writeName(commonName: string, others: Readonly<Record<string, string>>): Uint8Array {
  const parts = Object.entries(commonName === '' ? others : { ...others, CN: commonName });
  return sequence(
    ...parts.map(([name, value]) =>
      writeDer(DerTag.set, sequence(objectIdentifier(ATTRIBUTES[name] ?? name), utf8String(value))),
    ),
  );
}

function writeExtension(oid: string, isCritical: boolean, value: Uint8Array): Uint8Array {
  const critical = isCritical ? [writeDer(BOOLEAN, Uint8Array.of(0xff))] : [];
  return sequence(objectIdentifier(oid), ...critical, writeDer(DerTag.octetString, value));
}

const NAME_TAGS: Readonly<Record<string, number>> = { email: 0x81, DNS: 0x82, URI: 0x86 };
const IP_TAG = 0x87;

function writeAlternativeName(name: string): Uint8Array {
  const [, kind = '', text = ''] = /^([A-Za-z]+):(.*)$/.exec(name) ?? [];
  if (kind === 'IP') {
    const ip = parseIp(text);
    if (ip !== null) return writeDer(IP_TAG, ip);
  }
  const tag = NAME_TAGS[kind];
  if (tag === undefined) throw new RangeError(`expected DNS:…, IP:…, URI:… or email:…, found "${name}"`);
  return writeDer(tag, Buffer.from(text, 'latin1'));
}

function formatPem(label: string, der: Uint8Array): string {
  const base64 = Buffer.from(der)
    .toString('base64')
    .replace(/.{1,64}/g, '$&\n');
  return `-----BEGIN ${label}-----\n${base64}-----END ${label}-----\n`;
}

/** UTCTime until 2049, GeneralizedTime from then on, as RFC 5280 wants it; whole seconds. */
function time(atMs: number): Uint8Array {
  const digits = new Date(atMs).toISOString().replace(/[-:T]|\.\d+/g, '');
  const isUtcTime = digits < '2050';
  return writeDer(
    isUtcTime ? DerTag.utcTime : DerTag.generalizedTime,
    Buffer.from(isUtcTime ? digits.slice(2) : digits, 'latin1'),
  );
}
