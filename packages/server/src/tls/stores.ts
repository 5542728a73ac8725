import type { KeyObject, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { describeUnreadable } from '../unreadable-file.ts';
import { readJavaKeyStore } from './java-key-store.ts';
import type { StoreLocation } from './options.ts';
import { readPem } from './pem.ts';
import { readPkcs12 } from './pkcs12.ts';
import { type StoreContents, StoreFault } from './store-contents.ts';

/** A private key and what this server shows with it: its own certificate first, then each one's issuer. */
export interface KeyEntry {
  readonly key: KeyObject;
  readonly chain: readonly [X509Certificate, ...X509Certificate[]];
}

/** A key store or trust store that cannot be used: which key of the configuration, which file, what was found, what to do. */
export class StoreError extends Error {
  override readonly name = 'StoreError';
}

/**
 * The keys of a key store, one of each kind (RSA, EC …), each with its certificates.
 *
 * @param name of its keys in the configuration: `ssl.keyStore`
 * @throws StoreError
 */
export function readKeyStore(name: string, location: StoreLocation): Promise<readonly KeyEntry[]> {
  return readStore(name, location, ({ keys, trusted }) => {
    if (keys.length === 0) {
      const what = trusted.length === 0 ? 'neither a key nor a certificate' : 'certificates and no private key';
      throw new StoreFault(what, 'a private key with its certificate');
    }
    const entries = new Map<string, KeyEntry>();
    for (const { key, certificates } of keys) {
      const kind = key.asymmetricKeyType ?? '';
      if (!entries.has(kind)) entries.set(kind, { key, chain: orderChain(key, certificates) });
    }
    return [...entries.values()];
  });
}

/** The certificates of a trust store. @throws StoreError */
export function readTrustStore(name: string, location: StoreLocation): Promise<readonly X509Certificate[]> {
  return readStore(name, location, ({ keys, trusted }) => {
    // Where a key is, its certificates are trusted as well, as Java does with the first of them.
    const certificates = [...trusted, ...keys.flatMap((key) => key.certificates)];
    if (certificates.length === 0)
      throw new StoreFault('no certificate', 'the certificates of the authorities to trust');
    return [...new Map(certificates.map((certificate) => [certificate.fingerprint256, certificate])).values()];
  });
}

async function readStore<T>(
  name: string,
  { path, password, passwordPath }: StoreLocation,
  use: (contents: StoreContents) => T,
): Promise<T> {
  if (path === null) throw new StoreError(`${name}.location is missing`);
  const secret = passwordPath === null ? password : await readPasswordFile(name, passwordPath);
  const bytes = await readBytes(`${name}.location`, path);
  try {
    return use(await decode(bytes, secret));
  } catch (error) {
    if (error instanceof StoreFault) {
      throw new StoreError(`${name}.location: ${path}: found ${error.found}, expected ${error.expected}`, {
        cause: error,
      });
    }
    throw new StoreError(
      `${name}.location: ${path}: cannot be decoded (${(error as Error).message}), expected PEM, PKCS12 or JKS`,
      {
        cause: error,
      },
    );
  }
}

/** What a file is shows in its first bytes: Java does not care for its name or type either. */
async function decode(bytes: Buffer, password: string): Promise<StoreContents> {
  if (bytes.length === 0) throw new StoreFault('an empty file', 'PEM, PKCS12 or JKS');
  if (bytes.length >= 4 && bytes.readUInt32BE() === JKS_MAGIC) return readJavaKeyStore(bytes, password);
  if (bytes[0] === DER_SEQUENCE) return readPkcs12(bytes, password);
  const text = bytes.toString('latin1');
  if (!text.includes('-----BEGIN ')) throw new StoreFault('neither PEM, PKCS12 nor JKS', 'one of these');
  return readPem(text, password);
}

const JKS_MAGIC = 0xfeedfeed;
const DER_SEQUENCE = 0x30;

/** The file's text; one line break at its end does not count. */
async function readPasswordFile(name: string, path: string): Promise<string> {
  const bytes = await readBytes(`${name}.passwordPath`, path);
  return bytes.toString('utf8').replace(/(\r\n|\n|\r)$/, '');
}

async function readBytes(key: string, path: string): Promise<Buffer> {
  try {
    return await readFile(path);
  } catch (error) {
    throw unreadable(key, path, error);
  }
}

/** @param key of the configuration that names the file */
export function unreadable(key: string, path: string, error: unknown): StoreError {
  const found = `cannot be read: ${describeUnreadable(path, error)}`;
  return new StoreError(`${key}: ${path} ${found}; correct the path, or the rights of the file`, { cause: error });
}

/** The certificate of the key, then the issuer of each, as far as they are there; a root that signs itself is left out. */
function orderChain(key: KeyObject, certificates: readonly X509Certificate[]): KeyEntry['chain'] {
  const own = certificates.find((certificate) => certificate.checkPrivateKey(key));
  if (own === undefined) {
    const what =
      certificates.length === 0
        ? 'a key without a certificate'
        : `a key that fits none of ${certificates.length} certificates`;
    throw new StoreFault(what, 'the certificate that was issued for this key');
  }
  const chain: [X509Certificate, ...X509Certificate[]] = [own];
  for (let last = own; ; ) {
    const issuer = certificates.find((other) => !chain.includes(other) && last.checkIssued(other));
    if (issuer === undefined || issuer.checkIssued(issuer)) return chain;
    chain.push(issuer);
    last = issuer;
  }
}
