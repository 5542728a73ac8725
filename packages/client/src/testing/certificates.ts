import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A certificate with its key, as PEM. */
export interface KeyPair {
  readonly cert: string;
  readonly key: string;
  /** File with key and certificate, in this order: a PEM key store for Java. */
  readonly path: string;
}

export interface KeyPairOptions {
  /** Names and addresses in openssl's syntax. Default: none. */
  readonly subjectAltName?: string;
}

export function hasOpenssl(): boolean {
  return spawnSync('openssl', ['version'], { stdio: 'ignore' }).status === 0;
}

/** A certificate authority for one test, in a temporary directory. Needs the program openssl, 3.0 or later. */
export class CertificateAuthority {
  readonly #directory: string = mkdtempSync(join(tmpdir(), 'certificates-'));
  readonly #root: KeyPair;

  constructor() {
    this.#root = this.#make('root', ['-subj', '/CN=Test authority', '-addext', 'basicConstraints=critical,CA:TRUE']);
  }

  /** The certificate that others trust, as PEM. */
  get cert(): string {
    return this.#root.cert;
  }

  /** File with the certificate only: a PEM trust store for Java. */
  get path(): string {
    return join(this.#directory, 'root.crt');
  }

  /** Issues a certificate. @param name of the files, and the common name of the subject */
  issue(name: string, { subjectAltName }: KeyPairOptions = {}): KeyPair {
    const subject = ['-subj', `/O=Meerkat/CN=${name}`, '-addext', 'basicConstraints=CA:FALSE'];
    const names = subjectAltName === undefined ? [] : ['-addext', `subjectAltName=${subjectAltName}`];
    return this.#make(name, [...subject, ...names, '-CA', this.path, '-CAkey', join(this.#directory, 'root.key')]);
  }

  [Symbol.dispose](): void {
    rmSync(this.#directory, { recursive: true, force: true });
  }

  #make(name: string, args: readonly string[]): KeyPair {
    const keyPath = join(this.#directory, `${name}.key`);
    const certPath = join(this.#directory, `${name}.crt`);
    const fresh = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-noenc', '-days', '2'];
    const files = ['-keyout', keyPath, '-out', certPath];
    execFileSync('openssl', ['req', '-x509', ...fresh, ...files, ...args], { stdio: 'pipe' });
    const key = readFileSync(keyPath, 'utf8');
    const cert = readFileSync(certPath, 'utf8');
    const path = join(this.#directory, `${name}.pem`);
    writeFileSync(path, key + cert);
    return { cert, key, path };
  }
}
