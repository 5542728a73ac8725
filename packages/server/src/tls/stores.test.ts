import { createPrivateKey, X509Certificate } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test } from 'vitest';
import { NO_STORE, type StoreLocation } from './options.ts';
import { readKeyStore, readTrustStore } from './stores.ts';

const STORES = fileURLToPath(new URL('./testing/stores/', import.meta.url));
const directory = mkdtempSync(join(tmpdir(), 'stores-'));
const pem = (name: string): string => readFileSync(STORES + name, 'utf8');

afterAll(() => rmSync(directory, { recursive: true }));

describe('a key store', () => {
  test.each([
    ['JKS with RSA', 'key.jks', 's'],
    ['JKS with an elliptic curve', 'key-ec.jks', 'e'],
    ['PKCS12 of keytool with an elliptic curve', 'keytool-ec.p12', 'e'],
    ['PKCS12 of OpenSSL', 'openssl.p12', 's'],
    ['PKCS12 encrypted with RC2', 'rc2.p12', 's'],
  ])('%s gives the key and the certificate that went into it', async (_, file, name) => {
    const [entry] = await readKeyStore('ssl.keyStore', at(file));
    const key = createPrivateKey(pem(`${name}.key`));
    expect(entry?.key.equals(key)).toBe(true);
    expect(entry?.chain.map(String)).toEqual([String(new X509Certificate(pem(`${name}.crt`)))]);
  });

  test('of PEM has its blocks in any order, with text between them, and gives the chain without its root', async () => {
    const text = `${pem('ca.pem')}\nBag Attributes\n${pem('s.crt')}${pem('s.key')}`;
    const [entry] = await readKeyStore('ssl.keyStore', written(text));
    expect(entry?.chain.map(({ subject }) => subject)).toEqual(['CN=store.example']);
  });

  test.each(['pkcs8', 'pkcs1', 'encrypted pkcs8', 'encrypted pkcs1'])('of PEM may hold its key as %s', async (form) => {
    const type = form.endsWith('1') ? 'pkcs1' : 'pkcs8';
    const cipher = form.startsWith('encrypted') ? { cipher: 'aes-128-cbc', passphrase: 'changeit' } : {};
    const key = createPrivateKey(pem('s.key')).export({ type, format: 'pem', ...cipher });
    const [entry] = await readKeyStore('ssl.keyStore', written(`${key}${pem('s.crt')}`));
    expect(entry?.chain).toHaveLength(1);
  });

  test('takes its password from a file, without the line break at its end', async () => {
    const passwordPath = join(directory, 'password');
    writeFileSync(passwordPath, 'changeit\n');
    const location = { ...at('key.jks'), password: 'not this one', passwordPath };
    expect(await readKeyStore('ssl.keyStore', location)).toHaveLength(1);
  });
});

describe('a trust store', () => {
  test.each(['trust.jks', 'trust.p12', 'ca.pem'])('%s gives its authorities', async (file) => {
    const found = await readTrustStore('ssl.trustStore', at(file));
    expect(found.map(String)).toEqual([String(new X509Certificate(pem('ca.pem')))]);
  });

  test('keeps two authorities of the same name', async () => {
    const found = await readTrustStore('ssl.trustStore', written(pem('ca.pem') + pem('s.crt') + pem('ca.pem')));
    expect(found).toHaveLength(2);
  });
});

describe('a store that cannot be used names its key and file, what was found and what to do, and no secret', () => {
  test.each<[what: string, location: () => StoreLocation, message: RegExp]>([
    [
      'a missing file',
      () => at('missing.pem'),
      /ssl\.keyStore\.location: .*missing\.pem cannot be read: there is no such file/,
    ],
    ['a directory', () => ({ ...NO_STORE, path: directory }), /is a directory/],
    ['an empty file', () => written(''), /found an empty file/],
    ['another kind of file', () => written('hello'), /found neither PEM, PKCS12 nor JKS/],
    ['garbage that begins as PKCS12', () => written('0123456789'), /neither PEM, PKCS12 nor JKS/],
    [
      'JKS and a wrong password',
      () => at('key.jks', 's3cret'),
      /digest is not that of this password, expected the right password/,
    ],
    ['PKCS12 and a wrong password', () => at('openssl.p12', 's3cret'), /this password does not open/],
    ['an encrypted key and a wrong password', () => encrypted('s3cret'), /this password does not open/],
    ['an encrypted key and no password', () => encrypted(''), /an encrypted key and no password/],
    [
      'a key that fits no certificate',
      () => written(pem('e.key') + pem('s.crt')),
      /a key that fits none of 1 certificates/,
    ],
    ['certificates alone', () => written(pem('s.crt')), /certificates and no private key/],
    ['a trust store', () => at('trust.jks'), /certificates and no private key/],
    ['a JKS that was cut', () => written(readFileSync(`${STORES}key.jks`).subarray(0, 700)), /digest is not that/],
    [
      'a missing password file',
      () => ({ ...at('key.jks'), passwordPath: '/none' }),
      /ssl\.keyStore\.passwordPath: \/none cannot be read: there is no such file/,
    ],
  ])('%s', async (_, location, message) => {
    const error: Error = await readKeyStore('ssl.keyStore', location()).then(
      () => expect.unreachable(),
      (reason: Error) => reason,
    );
    expect(error.message).toMatch(message);
    expect(error.message).not.toMatch(/s3cret|changeit/);
    expect(error.message).not.toContain('\n');
  });
});

function at(file: string, password = 'changeit'): StoreLocation {
  return { path: STORES + file, password, passwordPath: null };
}

let count = 0;

function written(text: string | Uint8Array): StoreLocation {
  const path = join(directory, `store-${++count}`);
  writeFileSync(path, text);
  return { path, password: 'changeit', passwordPath: null };
}

function encrypted(password: string): StoreLocation {
  const options = { type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'changeit' } as const;
  const key = createPrivateKey(pem('s.key')).export(options);
  return { ...written(`${key}${pem('s.crt')}`), password };
}
