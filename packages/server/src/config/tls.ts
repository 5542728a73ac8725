import type { StoreLocation, TlsOptions } from '../tls/options.ts';
import { TlsProtocol } from '../tls/options.ts';
import type { TlsDraft } from './draft.ts';

/** A key whose line is missing or contradicts others: what was found there, and what is expected instead. */
export interface TlsFault {
  readonly key: string;
  /** Null: the value of the line, or that the line is missing. */
  readonly found: string | null;
  readonly expected: string;
}

/** @param resolvePath absolute path of a file that a key names */
export function makeTlsOptions(draft: TlsDraft, resolvePath: (path: string) => string): TlsOptions {
  const { protocol, enabledProtocols, wantsCrl: _, keyStore, trustStore, crlPath, ...options } = draft;
  const resolveStore = ({ path, password, passwordPath }: StoreLocation): StoreLocation => ({
    path: path === null ? null : resolvePath(path),
    password,
    passwordPath: passwordPath === null ? null : resolvePath(passwordPath),
  });
  return {
    ...options,
    keyStore: resolveStore(keyStore),
    trustStore: resolveStore(trustStore),
    crlPath: crlPath === null ? null : resolvePath(crlPath),
    protocols: enabledProtocols ?? (protocol === null ? Object.values(TlsProtocol) : [protocol]),
  };
}

/**
 * What keeps TLS from working, or from checking what the file asks for.
 *
 * @param reason the line that asks for TLS, as `secureClientPort`
 * @param without the line with which no authorities are needed; null: they are needed in any case
 */
export function findTlsFaults(draft: TlsDraft, reason: string, without: string | null): readonly TlsFault[] {
  const { prefix, keyStore, trustStore, clientAuth, wantsCrl, crlPath } = draft;
  const faults: TlsFault[] = [];
  if (keyStore.path === null) {
    const expected = `the file with this server's key and certificate, which ${reason} needs`;
    faults.push({ key: `${prefix}.keyStore.location`, found: null, expected });
  }
  if (trustStore.path === null && (clientAuth === 'need' || without === null)) {
    const orElse = without === null ? '' : `, or ${without}`;
    const expected = `the file with the authorities that peers are checked against${orElse}`;
    faults.push({ key: `${prefix}.trustStore.location`, found: null, expected });
  }
  if (wantsCrl && crlPath === null) {
    const expected = `${prefix}.crl.location as well, a file with the lists of revoked certificates: this server downloads none`;
    faults.push({ key: `${prefix}.crl`, found: null, expected });
  }
  return faults;
}
