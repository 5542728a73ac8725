import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { CertificateAuthority } from './certificate-authority.ts';
import { Credentials } from './credentials.ts';
import { DEFAULT_TLS_OPTIONS, NO_STORE } from './options.ts';
import { readTlsSettings } from './tls-settings.ts';

let directory: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'credentials-'));
});
afterEach(() => rmSync(directory, { recursive: true }));

test('a new certificate that could not be read for a reason outside of the files is read the next time', async () => {
  const authority = new CertificateAuthority();
  const [key, trust] = [join(directory, 'key.pem'), join(directory, 'trust.pem')];
  writeFileSync(key, authority.issue('old').keyStore);
  writeFileSync(trust, authority.certificate);
  const options = {
    ...DEFAULT_TLS_OPTIONS,
    keyStore: { ...NO_STORE, path: key },
    trustStore: { ...NO_STORE, path: trust },
    renewalPollMs: 5,
  };
  const log: string[] = [];
  const events = {
    onRenewed: () => log.push('renewed'),
    onNotice: (message: string) => log.push(message),
    onWarning: (message: string) => log.push(message),
  };
  let failures = 0;
  const credentials = await Credentials.open(options, events, (again, nowMs) => {
    if (failures++ === 0) return Promise.reject(new Error('too many open files'));
    return readTlsSettings(again, nowMs);
  });
  try {
    writeFileSync(key, authority.issue('new').keyStore);
    await expect
      .poll(() => log.join('\n'), { timeout: 60_000 })
      .toMatch(/in force: too many open files\nrenewed\n.*CN=new/);
  } finally {
    credentials.stop();
  }
});
