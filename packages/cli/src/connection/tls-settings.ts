import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import type { TlsConnectionOptions } from '@meerkat/client';
import { fileFailure, InvocationFailure } from '../run/command-failure.ts';
import type { Io } from '../run/io.ts';
import type { ConnectionWords } from './connection-words.ts';
import { envValue } from './environment.ts';
import { filePath } from './file-path.ts';
import type { Profile } from './profiles.ts';

/** What TLS is spoken with: each value from the command line, else from the environment, else from the profile. */
export function settleTls(words: ConnectionWords, env: Io['env'], profile: Profile | null): TlsConnectionOptions {
  const file = (
    word: string | undefined,
    option: string,
    variable: string,
    ofProfile: string | undefined,
  ): Pem | undefined => {
    if (word !== undefined) return readPem(word, option, env);
    const value = envValue(env, variable);
    if (value !== undefined) return readPem(value, variable, env);
    return ofProfile === undefined ? undefined : readPem(ofProfile, `tls of the profile "${profile?.name}"`, env);
  };
  const ca = file(words.tlsCa, '--tls-ca', 'MEERKAT_TLS_CA', profile?.tls?.ca);
  const cert = file(words.tlsCert, '--tls-cert', 'MEERKAT_TLS_CERT', profile?.tls?.cert);
  // One file may hold both.
  const key = file(words.tlsKey, '--tls-key', 'MEERKAT_TLS_KEY', profile?.tls?.key) ?? keyIn(cert);
  if (cert === undefined && key !== undefined) {
    throw new InvocationFailure('the key of a certificate without the certificate: --tls-cert names it');
  }
  if (cert !== undefined && key === undefined) {
    throw new InvocationFailure(`${cert.file} has a certificate and not its key: --tls-key names it`);
  }
  const passphrase = envValue(env, 'MEERKAT_TLS_PASSPHRASE') ?? profile?.tls?.passphrase;
  const servername = words.tlsServerName ?? profile?.tls?.serverName;
  const options: TlsConnectionOptions = {
    ...(ca === undefined ? {} : { ca: ca.pem }),
    ...(cert === undefined ? {} : { cert: cert.pem }),
    ...(key === undefined ? {} : { key: key.pem }),
    ...(passphrase === undefined ? {} : { passphrase }),
    ...(servername === undefined ? {} : { servername }),
    ...((words.tlsInsecure ?? profile?.tls?.insecure ?? false) ? { rejectUnauthorized: false } : {}),
  };
  check(options, [ca, cert, key]);
  return options;
}

interface Pem {
  readonly file: string;
  readonly pem: Buffer;
}

function readPem(text: string, origin: string, env: Io['env']): Pem {
  const file = filePath(text, process.cwd(), env);
  try {
    const pem = readFileSync(file);
    if (!pem.includes('-----BEGIN ')) throw new InvocationFailure(`${file} of ${origin} is no PEM file`);
    return { file, pem };
  } catch (error) {
    if (error instanceof InvocationFailure) throw error;
    throw fileFailure(`cannot read ${file} of ${origin}`, error);
  }
}

function keyIn(cert: Pem | undefined): Pem | undefined {
  return cert?.pem.includes('PRIVATE KEY-----') === true ? cert : undefined;
}

/** Finds what cannot work before a server is tried with it again and again: damaged files, a key of another certificate. */
function check(options: TlsConnectionOptions, files: readonly (Pem | undefined)[]): void {
  try {
    createSecureContext(options);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const names = [...new Set(files.flatMap((pem) => (pem === undefined ? [] : [pem.file])))].join(', ');
    const found = MEANINGS[code ?? ''] ?? message;
    throw new InvocationFailure(`the certificates cannot be used (${names}): ${found}`, error);
  }
}

const MEANINGS: Readonly<Record<string, string>> = {
  ERR_OSSL_X509_KEY_VALUES_MISMATCH: 'the key is that of another certificate',
  ERR_MISSING_PASSPHRASE: 'the key is encrypted; MEERKAT_TLS_PASSPHRASE or the tlsPassphrase of the profile opens it',
  ERR_OSSL_BAD_DECRYPT: 'the key does not open with this passphrase',
};
