import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeDirectory } from '../run/make-directory.ts';

/** Files in PEM. */
export interface Certificates {
  /** What servers and clients trust. */
  readonly authority: string;
  /** Key and certificate that all servers show, to clients and to each other. */
  readonly server: string;
  /** Key and certificate for a client. */
  readonly client: string;
}

/** Makes certificates for an ensemble on this machine. The key of their authority is kept nowhere. */
export async function writeCertificates(directory: string): Promise<Certificates> {
  makeDirectory(directory);
  // Loaded where it is wanted: it brings the whole server.
  const { CertificateAuthority } = await import('@meerkat/server');
  const authority = new CertificateAuthority('meerkat up');
  const names = ['IP:127.0.0.1', 'IP:::1', 'DNS:localhost'];
  return {
    authority: write(join(directory, 'ca.pem'), authority.certificate),
    server: write(join(directory, 'server.pem'), authority.issue('server', { names }).keyStore),
    client: write(join(directory, 'client.pem'), authority.issue('client').keyStore),
  };
}

/** Of zoo.cfg. A client may come without a certificate. */
export function tlsLines({ authority, server }: Certificates): readonly string[] {
  const [trust, key] = [authority, server].map((path) => path.replaceAll('\\', '\\\\'));
  return [
    ...['ssl', 'ssl.quorum'].flatMap((prefix) => [
      `${prefix}.keyStore.location=${key}`,
      `${prefix}.trustStore.location=${trust}`,
    ]),
    'ssl.clientAuth=want',
    'sslQuorum=true',
  ];
}

function write(path: string, text: string): string {
  writeFileSync(path, text, { mode: 0o600 });
  return path;
}
