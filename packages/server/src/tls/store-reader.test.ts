import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { DEFAULT_TLS_OPTIONS, type StoreLocation, type TlsOptions } from './options.ts';
import { readInThread } from './store-reader.ts';
import { StoreError } from './stores.ts';
import { readTlsSettings, sendable, withContext } from './tls-settings.ts';

const STORES = fileURLToPath(new URL('./testing/stores/', import.meta.url));
const { createPrivateKey } = crypto;
/** Keys that this thread has decoded, which is what follows all that takes long. */
let decoded = 0;

beforeAll(() => {
  crypto.createPrivateKey = (key) => {
    decoded++;
    return createPrivateKey(key);
  };
  syncBuiltinESMExports();
});
afterAll(() => {
  crypto.createPrivateKey = createPrivateKey;
  syncBuiltinESMExports();
});

function optionsOf(keyStore: string, trustStore: string, password = 'changeit'): TlsOptions {
  const at = (file: string): StoreLocation => ({ path: STORES + file, password, passwordPath: null });
  return { ...DEFAULT_TLS_OPTIONS, keyStore: at(keyStore), trustStore: at(trustStore) };
}

test.each([
  ['key.jks', 'trust.jks'],
  ['openssl.p12', 'trust.p12'],
])('%s and %s are read in another thread, with what this one would find', async (keyStore, trustStore) => {
  const options = optionsOf(keyStore, trustStore);
  decoded = 0;
  const { context, ...settings } = await readInThread(options, Date.now());
  expect(decoded).toBe(0);
  const { context: _here, ...found } = await readTlsSettings(options, Date.now());
  expect(decoded).toBe(1);
  expect(settings).toEqual(found);
  expect(context.context).toBeDefined();
});

test('what is wrong with a store is told as in one thread', async () => {
  const reading = readInThread(optionsOf('openssl.p12', 'trust.p12', 'wrong'), Date.now());
  await expect(reading).rejects.toThrow(StoreError);
  await expect(reading).rejects.toThrow(/ssl.keyStore.location: .*openssl.p12: .*this password does not open/);
});

test('settings are sent to another thread without making their context here', async () => {
  const { context: _context, ...settings } = await readTlsSettings(optionsOf('key.jks', 'trust.jks'), Date.now());
  // To make a context of these would throw.
  const sent = { ...settings, contextOptions: { cert: 'no certificate' } };
  expect(sendable(withContext(sent))).toEqual(sent);
  expect(() => withContext(sent).context).toThrow();
});
