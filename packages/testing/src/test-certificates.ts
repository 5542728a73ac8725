import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  CertificateAuthority,
  type CertificateOptions,
  type ClientAuth,
  DEFAULT_QUORUM_TLS_OPTIONS,
  DEFAULT_TLS_OPTIONS,
  type ServerOptions,
  type TlsOptions,
} from '@meerkat/server';

export interface TestCertificatesOptions {
  /** Whether clients have to show a certificate; `need`, the server's default, by default. */
  readonly clientAuth?: ClientAuth;
}

/** What a client gives as `tls` to `connect`. */
export interface ClientTls {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

/**
 * Certificates of one test: an authority, what servers show, and what clients show. Their keys are in a temporary directory
 * and end with the test.
 *
 *     using certificates = new TestCertificates();
 *     await using server = await TestServer.start({ tls: certificates });
 *     const client = await connect(server.connectString, { tls: certificates.client('ann') });
 */
export class TestCertificates implements Disposable {
  readonly #authority = new CertificateAuthority();
  readonly #directory = mkdtempSync(join(tmpdir(), 'test-certificates-'));
  readonly #clientAuth: ClientAuth;

  constructor({ clientAuth = 'need' }: TestCertificatesOptions = {}) {
    this.#clientAuth = clientAuth;
    const names = ['IP:127.0.0.1', 'DNS:localhost'];
    writeFileSync(this.#keyStore, this.#authority.issue('server', { names }).keyStore, { mode: 0o600 });
    writeFileSync(this.#trustStore, this.#authority.certificate);
  }

  /** The certificate of the authority, in PEM. */
  get ca(): string {
    return this.#authority.certificate;
  }

  /** A certificate for a client; its identity in ACLs is `x509:CN=name`. */
  client(name = 'client', options: CertificateOptions = {}): ClientTls {
    const { certificate, key } = this.#authority.issue(name, options);
    return { ca: this.ca, cert: certificate, key };
  }

  /** What a server with these certificates is configured with, besides its ports. */
  get serverOptions(): Pick<ServerOptions, 'sslQuorum' | 'tls' | 'quorumTls'> {
    const stores = {
      keyStore: { ...DEFAULT_TLS_OPTIONS.keyStore, path: this.#keyStore },
      trustStore: { ...DEFAULT_TLS_OPTIONS.trustStore, path: this.#trustStore },
    };
    const tls: TlsOptions = { ...DEFAULT_TLS_OPTIONS, ...stores, clientAuth: this.#clientAuth };
    return { sslQuorum: true, tls, quorumTls: { ...DEFAULT_QUORUM_TLS_OPTIONS, ...stores } };
  }

  /** Removes the files; servers that run need them no more. */
  [Symbol.dispose](): void {
    rmSync(this.#directory, { recursive: true, force: true });
  }

  get #keyStore(): string {
    return join(this.#directory, 'server.pem');
  }

  get #trustStore(): string {
    return join(this.#directory, 'ca.pem');
  }
}
