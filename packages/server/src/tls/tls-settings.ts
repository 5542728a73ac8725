import type { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createSecureContext, type SecureContext, type SecureContextOptions } from 'node:tls';
import type { TlsOptions } from './options.ts';
import { type KeyEntry, readKeyStore, readTrustStore, StoreError, unreadable } from './stores.ts';

/** Everything that TLS needs on one kind of port, read from its files and checked. */
export interface TlsSettings {
  readonly options: TlsOptions;
  /** For `tls.createSecureContext`. */
  readonly contextOptions: SecureContextOptions;
  readonly context: SecureContext;
  /** For the log: whose certificate this server shows, until when. */
  readonly description: string;
  /** When the first certificate of those that this server shows expires, in milliseconds since 1970. */
  readonly expiresAtMs: number;
  /** Whether peers can be checked at all. */
  readonly hasTrust: boolean;
  /** What is usable, and will not be for long or not by everybody. */
  readonly warnings: readonly string[];
}

/** What can be sent to another thread. */
export type SentTlsSettings = Omit<TlsSettings, 'context'>;

/** All but the context, which is not even made for that. */
export function sendable(settings: TlsSettings): SentTlsSettings {
  const { options, contextOptions, description, expiresAtMs, hasTrust, warnings } = settings;
  return { options, contextOptions, description, expiresAtMs, hasTrust, warnings };
}

/** With its context, which is made when it is wanted first: a hundred authorities take OpenSSL some milliseconds. */
export function withContext(settings: SentTlsSettings): TlsSettings {
  let context: SecureContext | null = null;
  return {
    ...settings,
    get context() {
      context ??= createSecureContext(settings.contextOptions);
      return context;
    },
  };
}

/**
 * Reads the stores, and finds what would keep TLS from working.
 *
 * @param nowMs milliseconds since 1970
 * @throws StoreError with one line that names key and file, what was found and what to do
 */
export async function readTlsSettings(options: TlsOptions, nowMs: number): Promise<TlsSettings> {
  const { prefix, trustStore, crlPath } = options;
  const entries = await readKeyStore(`${prefix}.keyStore`, options.keyStore);
  const trusted = trustStore.path === null ? [] : await readTrustStore(`${prefix}.trustStore`, trustStore);
  const crl = crlPath === null ? null : await readRevocations(`${prefix}.crl.location`, crlPath);
  const chain = entries.flatMap((entry) => entry.chain);
  const place = `${prefix}.keyStore.location: ${options.keyStore.path}`;
  const expired = chain.find((certificate) => Date.parse(certificate.validTo) <= nowMs);
  if (expired !== undefined) {
    throw new StoreError(`${place}: the certificate of ${describe(expired)} expired on ${expired.validTo}; renew it`);
  }
  const contextOptions: SecureContextOptions = {
    key: entries.map(({ key }) => key.export({ type: 'pkcs8', format: 'pem' }) as string),
    cert: entries.map((entry) => entry.chain.map(String).join('')),
    // Without authorities no peer is trusted: an empty list disables the defaults of Node.js.
    ca: trusted.map(String),
    ...(crl === null ? {} : { crl: [...crl] }),
    minVersion: options.protocols.includes('TLSv1.2') ? 'TLSv1.2' : 'TLSv1.3',
    maxVersion: options.protocols.includes('TLSv1.3') ? 'TLSv1.3' : 'TLSv1.2',
    ...(options.cipherSuites === null ? {} : { ciphers: options.cipherSuites.join(':'), honorCipherOrder: true }),
  };
  return {
    options,
    contextOptions,
    context: makeContext(place, contextOptions),
    description: describeChain(options, chain),
    expiresAtMs: Math.min(...chain.map((certificate) => Date.parse(certificate.validTo))),
    hasTrust: trusted.length > 0,
    warnings: findWarnings(options, entries, trusted, nowMs),
  };
}

function describeChain({ keyStore }: TlsOptions, [own]: readonly X509Certificate[]): string {
  return own === undefined ? '' : `${keyStore.path}: ${describe(own)}, valid until ${own.validTo}`;
}

function makeContext(place: string, options: SecureContextOptions): SecureContext {
  try {
    return createSecureContext(options);
  } catch (error) {
    const what = `OpenSSL refuses it (${(error as Error).message})`;
    throw new StoreError(`${place}: ${what}; is the key too short, or a cipher suite missing?`, { cause: error });
  }
}

/** One or more lists, in PEM, or one in DER. */
async function readRevocations(key: string, path: string): Promise<readonly string[]> {
  let bytes: Buffer;
  try {
    bytes = await readFile(path);
  } catch (error) {
    throw unreadable(key, path, error);
  }
  const text =
    bytes[0] === 0x30
      ? `-----BEGIN X509 CRL-----\n${bytes.toString('base64').replace(/.{64}/g, '$&\n')}\n-----END X509 CRL-----\n`
      : bytes.toString('latin1');
  const lists = text.match(/-----BEGIN X509 CRL-----[\s\S]*?-----END X509 CRL-----/g) ?? [];
  try {
    if (lists.length > 0) createSecureContext({ crl: lists });
  } catch (error) {
    throw new StoreError(`${key}: ${path}: a list in it cannot be decoded (${(error as Error).message})`, {
      cause: error,
    });
  }
  if (lists.length > 0) return lists;
  throw new StoreError(`${key}: ${path}: found no revocation list, expected PEM (BEGIN X509 CRL) or DER`);
}

function* findFutures(certificates: readonly X509Certificate[], nowMs: number): Iterable<string> {
  for (const certificate of certificates) {
    if (Date.parse(certificate.validFrom) > nowMs) {
      yield `the certificate of ${describe(certificate)} is valid from ${certificate.validFrom} only: is the clock right?`;
    }
  }
}

function findWarnings(
  { prefix, clientAuth }: TlsOptions,
  entries: readonly KeyEntry[],
  trusted: readonly X509Certificate[],
  nowMs: number,
): readonly string[] {
  const expired = trusted.filter((certificate) => Date.parse(certificate.validTo) <= nowMs);
  return [
    ...findFutures(
      entries.flatMap(({ chain }) => chain),
      nowMs,
    ),
    ...expired.map((ca) => `${prefix}.trustStore: the authority ${describe(ca)} expired on ${ca.validTo}`),
    ...(trusted.length === 0 && clientAuth === 'want'
      ? [`${prefix}.trustStore.location is missing: every certificate that a client shows is refused`]
      : []),
  ];
}

/** A subject on one line. */
function describe({ subject }: X509Certificate): string {
  return subject === '' || subject === undefined ? '(no subject)' : subject.replaceAll('\n', ', ');
}
